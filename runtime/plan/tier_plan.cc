#include "runtime/plan/tier_plan.h"

#include <algorithm>
#include <utility>

#include "offload/move/disk_link.h"

namespace tiercel {
namespace {

// The plan with the first `resident_pages` pages resident, and the hidden
// states of `state_rows` rows on the device.
TierPlan WithResidentPages(const TierNeeds& needs, int64_t budget,
                           int64_t resident_pages, int64_t state_rows) {
  const int64_t first = needs.first_position / kPageTokens;
  const int64_t end = needs.first_position + needs.context;
  TierPlan plan;
  plan.context = needs.context;
  plan.shape.layout = needs.layout;
  plan.shape.layers = needs.layers;
  plan.shape.context_pages = (end + kPageTokens - 1) / kPageTokens - first;
  plan.shape.resident_pages =
      std::min(resident_pages, plan.shape.context_pages);
  plan.shape.newest_pages = std::min(
      needs.newest_pages, plan.shape.context_pages - plan.shape.resident_pages);
  plan.shape.forks = needs.forks;
  plan.shape.staged_pages =
      plan.shape.context_pages - plan.shape.resident_pages;
  if (plan.shape.staged_pages > 0) {
    plan.shape.staged_pages += needs.forks.All();
  }
  plan.budget = budget;
  plan.weights = needs.weights;
  plan.host_weights = needs.host_weights;
  plan.draft = needs.draft;
  plan.state_rows = std::min(state_rows, needs.context);
  const int64_t states = AlignedBytes(plan.state_rows * needs.state_bytes);
  plan.workspace = needs.workspace + needs.host_folds +
                   std::max<int64_t>(0, states - needs.states_there);
  // The host has room for all rows: it holds a prompt's hidden states that the
  // device does not, and all of them while the prompt is stopped.
  plan.host_states = needs.kept_states + needs.context * needs.state_bytes;
  plan.host_distributions = needs.distributions;
  plan.views = needs.views;
  plan.staging = plan.shape.StagingBytes();
  plan.resident = plan.shape.SlotBytes();
  int64_t page_layers = plan.shape.context_pages * needs.layers;
  if (needs.shallow_layers > 0) {
    page_layers -=
        std::max<int64_t>(0, plan.shape.context_pages - needs.deep_pages) *
        (needs.layers - needs.shallow_layers);
  }
  page_layers += needs.forks.All() * needs.layers;
  plan.host_kv = page_layers * needs.layout.PageBytes();
  plan.shape.host = needs.host;
  plan.host_buffers = needs.host_buffers;
  return plan;
}

}  // namespace

// One more resident page takes a page in every layer and gives back its place
// in both buffers. So the bytes rise with the resident pages if there are three
// layers or more; with fewer they do not, and then all pages are resident or
// only those that must be.
TierPlan PlanTiers(const TierNeeds& needs, int64_t budget) {
  const auto with = [&](int64_t pages) {
    return WithResidentPages(needs, budget, pages, needs.tile_rows);
  };
  const TierPlan least = with(needs.resident_pages);
  const TierPlan everything = WithResidentPages(
      needs, budget, least.shape.context_pages, needs.context);
  if (everything.fits()) return everything;
  const TierPlan all = with(least.shape.context_pages);
  if (all.fits()) return all;
  const int64_t page_bytes = needs.layout.PageBytes();
  if (!least.fits() || needs.layers <= 2) {
    return least.DeviceBytes() <= all.DeviceBytes() ? least : all;
  }
  int64_t pages = needs.resident_pages + (budget - least.DeviceBytes()) /
                                             ((needs.layers - 2) * page_bytes);
  TierPlan plan = with(pages);
  // Rounding up for alignment may leave no room for the last page.
  while (!plan.fits()) plan = with(--pages);
  return plan;
}

TierPlan PlanWithDisk(const TierNeeds& needs, int64_t budget,
                      int64_t pages_budget) {
  TierPlan plan = PlanTiers(needs, budget);
  TierShape& shape = plan.shape;
  plan.host_buffers +=
      DiskLink::BufferBytes(shape.layout.PageBytes(), shape.context_pages);
  const int64_t slot_bytes = shape.layers * shape.layout.PageBytes();
  const int64_t in_host = std::clamp<int64_t>(
      pages_budget / slot_bytes - shape.forks.All(), 0, shape.context_pages);
  shape.disk_pages = shape.context_pages - in_host;
  plan.host_kv = (in_host + shape.forks.All()) * slot_bytes;
  plan.disk_kv = shape.disk_pages * slot_bytes;
  return plan;
}

TierPlan PlanInPlace(const TierNeeds& needs, int64_t budget) {
  TierNeeds own = needs;  // the host has no share of what moves nowhere
  own.host = {};
  own.host_folds = own.host_buffers = 0;
  TierPlan plan = WithResidentPages(own, budget, 0, needs.context);
  plan.in_place = true;
  plan.host_states = needs.kept_states;
  plan.shape.newest_pages = 0;
  plan.shape.staged_pages = 0;
  plan.staging = 0;
  plan.resident = 0;
  return plan;
}

TierPlan PlanOnDevice(const TierNeeds& needs, int64_t budget) {
  TierPlan plan = PlanInPlace(needs, budget);
  plan.on_device = true;
  plan.resident = AlignedBytes(std::exchange(plan.host_kv, 0));
  plan.host_states = 0;
  return plan;
}

}  // namespace tiercel

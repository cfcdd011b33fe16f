#ifndef TIERCEL_RUNTIME_PLAN_TIER_PLAN_H_
#define TIERCEL_RUNTIME_PLAN_TIER_PLAN_H_

#include <cstdint>

#include "offload/tier/tier_shape.h"

namespace tiercel {

// The bytes that a session will take of each tier, worked out before any is
// taken.
struct TierPlan {
  int64_t context = 0;  // positions
  TierShape shape;
  bool in_place = false;   // no page ever moves
  bool on_device = false;  // in_place, with all pages on the device
  // The device holds the hidden states of this many rows of a step. Those of a
  // prompt that has more are in the host tier, and come up in tiles.
  int64_t state_rows = 0;

  // Device
  int64_t budget = 0;  // in place: for both tiers
  int64_t weights = 0;
  int64_t draft = 0;      // a model that drafts, its KV and its workspace
  int64_t workspace = 0;  // hidden states, activations, scratch
  int64_t staging = 0;    // two layer buffers
  int64_t views = 0;      // views of drafts: chunks, digests, queries
  int64_t resident = 0;   // slots: resident, newest and open pages

  // Host
  int64_t host_weights = 0;  // a model's, which are taken with it
  int64_t host_kv = 0;
  int64_t host_states = 0;  // hidden states of a prompt, with a copy for the
                            // layer that is on its way to disk
  int64_t host_distributions = 0;  // distributions that tokens are drawn from
  // Buffers between pages on disk and the link, and for the host's share.
  int64_t host_buffers = 0;

  // Disk
  int64_t disk_kv = 0;

  int64_t DeviceBytes() const {
    return weights + draft + workspace + staging + views + resident;
  }
  int64_t HostBytes() const {
    return host_kv + host_states + host_distributions + host_buffers;
  }
  // Returns true if all memory is taken before it is needed.
  bool TakesAllAtFirst() const { return !in_place || on_device; }
  bool fits() const {
    return DeviceBytes() + (in_place ? HostBytes() : 0) <= budget;
  }
};

// The needs of a session that do not depend on the budget.
struct TierNeeds {
  KvLayout layout;
  int layers = 0;
  int64_t context = 0;  // positions
  int64_t first_position = 0;
  int64_t weights = 0;
  int64_t host_weights = 0;
  int64_t draft = 0;
  int64_t workspace = 0;       // without hidden states
  int64_t state_bytes = 0;     // bytes of one row's hidden state
  int64_t states_there = 0;    // bytes for hidden states that are taken already
  int64_t tile_rows = 0;       // least rows of hidden states on the device
  int64_t views = 0;           // the views of a sequence and its forks
  int64_t kept_states = 0;     // hidden states of a layer on its way to disk
  int64_t distributions = 0;   // distributions that tokens are drawn from
  int64_t resident_pages = 0;  // least resident pages
  int64_t newest_pages = 0;
  // Unless `shallow_layers` is 0, all but `deep_pages` pages exist in the first
  // `shallow_layers` layers alone.
  int shallow_layers = 0;
  int64_t deep_pages = 0;
  // The host's share of a sweep, and the forks that step at once with the
  // sequence; bytes of the device for the host's folds, and of the host for its
  // buffers.
  HostShare host = {};
  ForkPages forks = {};
  int64_t host_folds = 0;
  int64_t host_buffers = 0;
};

// Divides `budget` bytes of device memory: first weights, workspace, views and
// the two layer buffers, then as many resident pages as fit, and if those are
// all pages, all hidden states. A page is resident in every layer or in none,
// so that the copies of each layer take as long as those of any other, and
// computing hides them alike. If not even the least fits, the plan is that of
// the least, and fits() is false.
TierPlan PlanTiers(const TierNeeds& needs, int64_t budget);

// The plan with `pages_budget` bytes for pages in the host tier; the pages that
// have no room there are on disk.
TierPlan PlanWithDisk(const TierNeeds& needs, int64_t budget,
                      int64_t pages_budget);

// The plan of a device that computes in the host tier: nothing is staged, and
// all pages stay where they are written.
TierPlan PlanInPlace(const TierNeeds& needs, int64_t budget);

// The plan with all pages on the device and nowhere else.
TierPlan PlanOnDevice(const TierNeeds& needs, int64_t budget);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_TIER_PLAN_H_

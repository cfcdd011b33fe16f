#ifndef TIERCEL_OFFLOAD_PLAN_TIER_PLAN_H_
#define TIERCEL_OFFLOAD_PLAN_TIER_PLAN_H_

#include <cstdint>

#include "offload/tier/tier_shape.h"

namespace tiercel {

// What a session needs, in bytes of each tier, before anything is taken.
struct TierPlan {
  int64_t context = 0;  // positions
  TierShape shape;
  bool in_place = false;   // no page ever moves
  bool on_device = false;  // ... from the device, where all are
  // The hidden states of so many rows of a step are on the device; those of a
  // prompt that has more are in the host tier, and come up in tiles.
  int64_t state_rows = 0;

  // Device
  int64_t budget = 0;  // in place: of both tiers
  int64_t weights = 0;
  int64_t draft = 0;      // a model that drafts, its KV and its workspace
  int64_t workspace = 0;  // hidden states, activations, scratch
  int64_t staging = 0;    // two layer buffers
  int64_t views = 0;      // of drafts: chunks, digests, queries
  int64_t resident = 0;   // pages that stay, the open ones among them

  // Host
  int64_t host_kv = 0;
  int64_t host_states = 0;   // hidden states of a prompt, of a layer on its way
                             // to disk too
  int64_t host_laws = 0;     // what tokens are drawn from
  int64_t disk_buffers = 0;  // that pages on disk come and go through

  // Disk
  int64_t disk_kv = 0;

  int64_t DeviceBytes() const {
    return weights + draft + workspace + staging + views + resident;
  }
  int64_t HostBytes() const {
    return host_kv + host_states + host_laws + disk_buffers;
  }
  bool fits() const {
    return DeviceBytes() + (in_place ? HostBytes() : 0) <= budget;
  }
};

// What does not depend on the budget.
struct TierNeeds {
  KvLayout layout;
  int layers = 0;
  int64_t context = 0;  // positions
  int64_t first_position = 0;
  int64_t weights = 0;
  int64_t draft = 0;
  int64_t workspace = 0;     // but for hidden states
  int64_t state_bytes = 0;   // of the hidden state of a row
  int64_t states_there = 0;  // bytes that hidden states may have and are taken
  int64_t tile_rows = 0;     // of so many rows they must be on the device
  int64_t views = 0;
  int64_t kept_states = 0;     // of a layer on its way to disk
  int64_t laws = 0;            // what tokens are drawn from
  int64_t resident_pages = 0;  // at least so many
  int64_t newest_pages = 0;
  // All but so many pages exist in the first `shallow_layers` alone, if not 0.
  int shallow_layers = 0;
  int64_t deep_pages = 0;
};

// Divides `budget` bytes of device memory: what must be there, then as many
// resident pages as are left, and with all of them all hidden states. A page
// stays in every layer or in none, so that each layer has computing to hide its
// copies behind. Where it does not fit the plan says what the least would take.
TierPlan PlanTiers(const TierNeeds& needs, int64_t budget);

// The plan where pages may have `pages_budget` bytes of the host tier, and
// those that have no room there are on disk.
TierPlan PlanWithDisk(const TierNeeds& needs, int64_t budget,
                      int64_t pages_budget);

// The plan where the device computes in the host tier: nothing is staged, and
// all pages are where they are written.
TierPlan PlanInPlace(const TierNeeds& needs, int64_t budget);

// The plan where all pages are on the device and nowhere else.
TierPlan PlanOnDevice(const TierNeeds& needs, int64_t budget);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PLAN_TIER_PLAN_H_

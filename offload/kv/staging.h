#ifndef TIERCEL_OFFLOAD_KV_STAGING_H_
#define TIERCEL_OFFLOAD_KV_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/page_table.h"
#include "offload/kv/residency.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// The pages that a step's view reads in each layer.
class PagesRead {
 public:
  PagesRead() = default;  // all pages
  // [layer, or one if all are alike][page]: 1 or 0.
  explicit PagesRead(std::vector<std::vector<uint8_t>> layers)
      : layers_(std::move(layers)) {}

  bool In(int layer, int64_t page) const;
  bool InAny(int64_t page) const;

 private:
  std::vector<std::vector<uint8_t>> layers_;  // empty: everything
};

// The step of one sequence over the layer buffers: its pages and their places
// there.
struct StagedStep {
  using PageList = std::vector<int64_t>;

  // Copies are counted in `counts`. All arguments outlive this.
  StagedStep(PageTable& table, Residency& moved_by, KvMoves& counts)
      : pages(table), residency(moved_by), moves(counts) {}

  PageTable& pages;
  Residency& residency;
  KvMoves& moves;

  // ---- Set by the sequence, before it joins; host_end, before it brings ----
  PagesRead reads = {};
  Phase phase = Phase::kVerify;
  int64_t end = 0;            // the sequence's, before the step
  int64_t first_written = 0;  // the first page that the step writes
  // The host may attend to pages that exist below alone if they are before this
  // one.
  int64_t host_end = 0;
  bool prompt = false;  // no step like it follows

  // ---- Set by Staging ----
  PageList away = {};   // pages that exist below alone, in order
  PageList later = {};  // pages that a next step finds there
  int64_t host = 0;     // the first of `away`, which the host attends to
  std::vector<int64_t> place = {};  // [page] in a buffer; -1: on the device
  int done = 0;                     // layers that have ended
  int parked_layer = -1;            // -1: it has not been suspended
  PageList parked = {};             // pages that it has written there

  // The pages that the host attends to: consecutive ones, which have places but
  // are not fetched.
  std::span<const int64_t> host_pages() const {
    return std::span(away).first(static_cast<size_t>(host));
  }
  // Returns true if the page was given a place: the others were on the device.
  bool HasPlace(int64_t page) const {
    return place[static_cast<size_t>(page)] >= 0;
  }
};

// The contents of a tier's two layer buffers: while a layer computes over one,
// the next one's pages arrive in the other. After the last two layers of a step
// those of the first two are asked for, for a next step with the same views.
//
// A step is that of one sequence, or of several, which join it before its first
// layer: a page that they share arrives once for all. A page has the same place
// in both buffers. Pages are told apart by their contents below
// (PageTable::Page::contents), so pages fetched ahead serve any sequence that
// has them.
class Staging {
 public:
  using PageList = StagedStep::PageList;
  using Ticket = CopyEngine::Ticket;
  using Cancelled = CopyEngine::Cancelled;

  // `tier` outlives this.
  explicit Staging(KvTier& tier) : tier_(tier) {}

  // Returns true if layers have been fetched ahead with the page's contents.
  bool IsAhead(const PageTable::Page& page) const {
    return ahead_.place.contains(page.contents);
  }

  // Gives every page of a sequence's step that has no device slot a place in
  // the buffers, whether the view reads it or not: the existing pages, and
  // those that a prompt fills. Errors, with nothing joined: out_of_memory, if
  // the buffers have no room beside the sequences that have joined; cancelled.
  absl::Status Join(StagedStep& step, Cancelled cancelled);
  // The sequence's step is abandoned; those of others go on. Without others its
  // fetches are dropped.
  void Leave(StagedStep& step);
  // Called before the sequence ends: its step is abandoned, too.
  void Forget(StagedStep& step);

  // Waits until the pages that `layer` reads have arrived and those that it
  // writes over have left. The layer after it has been asked for. Errors:
  // copy_failed, the same for all sequences of the step; cancelled.
  absl::Status Bring(int layer, Cancelled cancelled);
  // The address of `page` of `layer`; null if the view reads none of it.
  DevicePtr<std::byte> PageOf(const StagedStep& step, int layer,
                              int64_t page) const;
  // Sends pages of `layer` down, from where they are.
  Ticket SendDown(const StagedStep& step, const PageList& pages, int layer);
  // `layer` has computed; `sent` is the copy of its pages down, or 0. Once that
  // holds for all sequences, asks for the layer that its buffer holds next;
  // after a step's last two layers that is one of the next step's. The last
  // layer ends the step.
  void Done(StagedStep& step, int layer, Ticket sent);

  // The only sequence of a step stops in `layer`, in which it has written the
  // pages `parked`: these go down.
  Ticket Suspend(StagedStep& step, int layer, PageList parked);
  // The suspended step goes on in its layer, with the pages that it parked.
  // Errors: those of Join.
  absl::Status Resume(StagedStep& step, Cancelled cancelled);
  // The only sequence of a step skips the layers before `layer`, which is next.
  // Errors: cancelled.
  absl::Status SkipTo(int layer, Cancelled cancelled);

 private:
  // Contents, by number, and their places.
  using Places = std::unordered_map<int64_t, int64_t>;

  // The pages of the first two layers that were asked for after a step.
  struct Ahead {
    int layers = 0;  // the number of layers asked for
    Places place;
    std::vector<int64_t> contents;              // [place]; 0: none
    std::array<std::vector<uint8_t>, 2> asked;  // [layer][place]
    // [layer]: the sequences that asked, and for how many pages.
    std::array<std::vector<std::pair<const StagedStep*, int64_t>>, 2> by;
  };

  KvTier::Buffer& BufferOf(int64_t layer) { return tier_.BufferOf(layer); }
  int Layers() const { return tier_.shape.layers; }
  CopyEngine& engine() { return *tier_.engine; }
  DevicePtr<std::byte> Place(int64_t layer, int64_t place) const;
  int64_t HostsOf(const StagedStep& step, const PageList& pages) const;
  absl::Status Enter(StagedStep& step, Cancelled cancelled);
  absl::Status TakePlaces(StagedStep& step);
  int64_t TakePlace();
  bool IsThere(int layer) const;
  bool WasAsked(int layer) const;
  void TakeShare(StagedStep& step);
  void Ask(int layer);
  void Fetch(int layer);
  void EndLayers();
  void UseAhead(int layer);
  void PlanAhead();
  void AskAhead(int layer);
  void DropFetches();
  absl::Status AwaitBuffers(Cancelled cancelled);
  absl::Status Await(int layer, Cancelled cancelled);

  KvTier& tier_;
  Ahead ahead_;

  // ---- The step ----
  std::vector<StagedStep*> steps_;  // empty: none
  Places places_;                   // the existing pages' places
  std::vector<uint8_t> taken_;      // [place]
  int64_t free_ = 0;                // no place before this one is free
  int asked_ = 0;                   // layers whose fetch has been submitted
  int ended_ = 0;                   // layers that have ended for all sequences
  std::array<bool, 2> there_ = {};  // [layer]: it was fetched ahead
  // The last layer that was waited for, and the outcome.
  int awaited_ = -1;
  absl::Status arrived_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_STAGING_H_

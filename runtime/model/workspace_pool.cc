#include "runtime/model/workspace_pool.h"

#include <utility>

namespace tiercel {

int64_t Workspace::Bytes() const {
  int64_t bytes = 0;
  for (const Rank& rank : ranks) bytes += rank.Bytes();
  return bytes;
}

WorkspacePool::WorkspacePool(
    std::vector<std::shared_ptr<MemoryAccount>> accounts,
    std::shared_ptr<MemoryAccount> host)
    : promised_(accounts.size()), distributions_(std::move(host), 0) {
  for (std::shared_ptr<MemoryAccount>& account : accounts) {
    promises_.emplace_back(std::move(account), 0);
  }
}

WorkspaceSize WorkspacePool::Promised(size_t rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return promised_[rank];
}

void WorkspacePool::Promise(size_t rank, const WorkspaceSize& size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  promised_[rank] = promised_[rank].Or(size);
  distributions_.Resize(promised_.front().distributions);
  NotePromises();
}

std::unique_ptr<Workspace> WorkspacePool::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Workspace> taken = std::move(idle_);
  if (taken == nullptr) {
    taken = std::make_unique<Workspace>();
    taken->ranks.resize(promised_.size());
  }
  ++in_use_;
  return taken;
}

void WorkspacePool::GiveBack(std::unique_ptr<Workspace> workspace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --in_use_;
  if (idle_ == nullptr || idle_->Bytes() < workspace->Bytes()) {
    std::swap(idle_, workspace);
  }
  NotePromises();
}

void WorkspacePool::Trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (in_use_ > 0) return;
  idle_ = nullptr;
  NotePromises();
}

bool WorkspacePool::InUse() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_ > 0;
}

// While all workspaces are in use their sizes are not known; the last known
// promises stay.
void WorkspacePool::NotePromises() {
  if (idle_ == nullptr && in_use_ > 0) return;
  for (size_t rank = 0; rank < promises_.size(); ++rank) {
    const int64_t there = idle_ == nullptr ? 0 : idle_->ranks[rank].Bytes();
    promises_[rank].Resize(
        std::max<int64_t>(0, promised_[rank].DeviceBytes() - there));
  }
}

}  // namespace tiercel

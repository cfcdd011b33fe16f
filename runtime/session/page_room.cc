#include "runtime/session/page_room.h"

#include <algorithm>
#include <cstddef>

#include "kernels/kv/kv_layout.h"

namespace tiercel {

void PageNeeds::Add(const Session& session, int64_t kept, int64_t most) {
  const int64_t begin = session.sequence().first_position();
  // The last page that is kept may be shared, and is copied when it is written.
  const int64_t first = (begin + kept) / kPageTokens;
  const int64_t end = (begin + most + kPageTokens - 1) / kPageTokens;
  pages_[&session] = std::max<int64_t>(end - first, 0);
}

bool PageNeeds::Fit() const {
  if (pages_.empty()) return true;
  const size_t ranks = pages_.begin()->first->kv().ranks().size();
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::map<const PagePool*, int64_t> wanted;  // pages of each pool
    std::map<const PagePool*, const RankKv*> whose;
    for (const auto& [session, pages] : pages_) {
      const RankKv& kv = *session->kv().ranks()[rank];
      wanted[&kv.pages()] += pages;
      whose[&kv.pages()] = &kv;
    }
    int64_t beyond = 0;  // bytes that were not planned
    for (const auto& [pool, pages] : wanted) {
      const RankKv& kv = *whose[pool];
      const int64_t more = pages - kv.PlannedPages();
      if (more <= 0) continue;
      if (pool->on_device()) return false;
      beyond += more * pool->layers() * pool->layout().PageBytes();
    }
    const RankKv& any = *whose.begin()->second;
    if (beyond > 0 && beyond > any.machine().kv_account()->room()) return false;
  }
  return true;
}

}  // namespace tiercel

#include "runtime/session/page_room.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "kernels/kv/kv_layout.h"

namespace tiercel {

void PageNeeds::Add(const Session& session, int64_t kept, int64_t most) {
  const Sequence& sequence = session.sequence();
  const int64_t begin = sequence.first_position();
  // The last page that is kept may be shared, and is copied when it is written.
  const int64_t first = (begin + kept) / kPageTokens;
  // A block is drafted whole at the end of a text, too.
  const int64_t context = std::ssize(sequence.tokens()) + sequence.room();
  const int64_t rows = std::min(most + kMaxStepRows, context);
  const int64_t end = (begin + rows + kPageTokens - 1) / kPageTokens;
  // The rows of a branch lie in two pages at most.
  const int64_t in_branches = 2 * session.kv().site().branches;
  pages_[&session] = std::max<int64_t>(end - first, 0) + in_branches;
}

bool PageNeeds::Fit() const {
  if (pages_.empty()) return true;
  const size_t ranks = pages_.begin()->first->kv().ranks().size();
  for (size_t rank = 0; rank < ranks; ++rank) {
    struct Wanted {
      const RankKv* of = nullptr;  // one of those that share the pages
      int64_t pages = 0;
    };
    std::map<const PagePool*, Wanted> wanted;
    for (const auto& [session, pages] : pages_) {
      const RankKv& kv = *session->kv().ranks()[rank];
      Wanted& own = wanted[&kv.pages()];
      own.of = &kv;
      own.pages += pages;
    }
    int64_t beyond = 0;  // bytes that were not planned
    for (const auto& [pool, own] : wanted) {
      const int64_t more = own.pages - own.of->PlannedPages();
      if (more <= 0) continue;
      if (pool->on_device()) return false;
      beyond += more * pool->layers() * pool->layout().PageBytes();
    }
    const RankKv& any = *wanted.begin()->second.of;
    if (beyond > 0 && beyond > any.machine().kv_account()->room()) return false;
  }
  return true;
}

}  // namespace tiercel

#ifndef TIERCEL_RUNTIME_SESSION_PAGE_ROOM_H_
#define TIERCEL_RUNTIME_SESSION_PAGE_ROOM_H_

#include <cstdint>
#include <map>

#include "runtime/session/session.h"

namespace tiercel {

// The KV pages that sessions of one model may still take, beside the memory
// that there is for them.
class PageNeeds {
 public:
  // Adds a session that keeps its first `kept` positions, and will hold `most`
  // tokens at most.
  void Add(const Session& session, int64_t kept, int64_t most);
  // Returns true if all of them fit on every rank.
  bool Fit() const;

 private:
  std::map<const Session*, int64_t> pages_;  // pages that each may take
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_PAGE_ROOM_H_

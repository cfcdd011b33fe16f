#ifndef TIERCEL_APPS_SERVE_PAGE_H_
#define TIERCEL_APPS_SERVE_PAGE_H_

#include "apps/serve/http.h"

namespace tiercel::serve {

// The page for readers, page.html. Its policy lets nothing run or load but what
// is in that file, and lets no text become markup.
HttpReply PageReply();

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_PAGE_H_

// Queues: tiercel_queue.h.

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "include/tiercel_queue.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"
#include "runtime/api/queue.h"

struct tiercel_queue {
  std::unique_ptr<tiercel::Queue> queue;
};

extern "C" {

tiercel_status tiercel_queue_create(const tiercel_model* model,
                                    const tiercel_queue_params* params,
                                    tiercel_queue** queue,
                                    tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("queue", queue));
    *queue = nullptr;
    RETURN_IF_ERROR(tiercel::NeedArgument("model", model));
    tiercel_queue_params read;
    RETURN_IF_ERROR(tiercel::ReadStruct("params", params, &read));
    if (read.at_once < 0 || read.at_once > tiercel::kMaxStepRows) {
      return tiercel::UsageError(
          "invalid_argument",
          absl::StrCat("at_once: got ", read.at_once, ", need 0 to ",
                       tiercel::kMaxStepRows));
    }
    constexpr size_t kOurs = 16;
    ASSIGN_OR_RETURN(
        std::unique_ptr<tiercel::Queue> made,
        tiercel::Queue::Create(
            model->model,
            read.at_once == 0 ? kOurs : static_cast<size_t>(read.at_once)));
    *queue = new tiercel_queue{std::move(made)};
    return absl::OkStatus();
  });
}

tiercel_status tiercel_queue_add(tiercel_queue* queue,
                                 const tiercel_batch_entry* entry,
                                 tiercel_on_end on_end, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("queue", queue));
    return queue->queue->Add(entry, on_end);
  });
}

size_t tiercel_queue_running(const tiercel_queue* queue) {
  return queue == nullptr ? 0 : queue->queue->running();
}

size_t tiercel_queue_waiting(const tiercel_queue* queue) {
  return queue == nullptr ? 0 : queue->queue->waiting();
}

tiercel_status tiercel_queue_wait(tiercel_queue* queue, tiercel_error* error) {
  return tiercel::AtBoundary(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(tiercel::NeedArgument("queue", queue));
    return queue->queue->Wait();
  });
}

void tiercel_queue_free(tiercel_queue* queue) {
  const tiercel::CallersThread thread;
  // A forked process has no thread to end, and a callback cannot wait for its
  // own end.
  if (queue == nullptr || !queue->queue->CheckProcess().ok() ||
      queue->queue->IsInCallback()) {
    return;
  }
  delete queue;
}

}  // extern "C"

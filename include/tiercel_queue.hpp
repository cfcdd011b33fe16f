// Generations that are made at once, for C++17: tiercel_generate_batch of
// tiercel.h, and tiercel_queue.h.
//
//   tiercel::Queue queue(model);
//   queue.add({&session, sampling, &prompt, on_token}, on_end);
#ifndef TIERCEL_QUEUE_HPP_
#define TIERCEL_QUEUE_HPP_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tiercel.hpp"
#include "tiercel_queue.h"

namespace tiercel {
inline namespace v0 {

// The status of an entry until it ends, which no entry ends with.
inline constexpr tiercel_status not_ended = TIERCEL_BUFFER_TOO_SMALL;

// A generation that is made at once with others, as tiercel_batch_entry has it.
// A function that throws, or returns false, ends this one alone.
struct Entry {
  Session* session;
  tiercel_sampling sampling = defaults<tiercel_sampling>();
  // It is read first, as by Session::read; null: there is none.
  const std::vector<int32_t>* prompt = nullptr;
  OnToken on_token = {};
  Progress progress = {};            // of reading the prompt
  tiercel_status* status = nullptr;  // receives its status; may be null
};

namespace internal {

// An entry that the library knows by its address.
class Generating {
 public:
  explicit Generating(Entry entry)
      : entry_(std::move(entry)),
        on_token_(entry_.on_token),
        progress_(entry_.progress) {
    if (entry_.status == nullptr) entry_.status = &status_;
    *entry_.status = not_ended;
  }
  Generating(const Generating&) = delete;
  Generating& operator=(const Generating&) = delete;

  // The entry for the library; the prompt must stay until it is copied.
  tiercel_batch_entry arguments() {
    auto arguments = defaults<tiercel_batch_entry>();
    arguments.session = entry_.session->get();
    arguments.sampling = &entry_.sampling;
    arguments.on_token = [](void* user_data, const tiercel_token* token) {
      return call(static_cast<Generating*>(user_data)->on_token_, token);
    };
    arguments.user_data = this;
    arguments.status = entry_.status;
    arguments.error = &error_;
    if (entry_.prompt != nullptr) {
      static const int32_t none = 0;  // NULL would mean that there is no prompt
      arguments.ids = entry_.prompt->empty() ? &none : entry_.prompt->data();
      arguments.count = entry_.prompt->size();
      arguments.progress = [](void* user_data, uint64_t done, uint64_t total) {
        return static_cast<Generating*>(user_data)->progress_(done, total);
      };
    }
    return arguments;
  }

  bool ended() const { return *entry_.status != not_ended; }
  // What ended it, once it has ended: an Error, or what a function threw. Null:
  // it ended well, or by a function that returned false.
  std::exception_ptr thrown() const {
    try {
      if (progress_.ended()) {
        progress_.check(*entry_.status, error_);
      } else {
        on_token_.check(*entry_.status, error_);
      }
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

 private:
  Entry entry_;
  Callback<OnToken> on_token_;
  Callback<Progress> progress_;
  tiercel_status status_ = not_ended;
  tiercel_error error_ = defaults<tiercel_error>();
};

}  // namespace internal

// Makes several generations at once. Returns for each null, or what ended it:
// an Error, or what its function threw. Throws if none can begin.
inline std::vector<std::exception_ptr> generate_batch(
    const std::vector<Entry>& entries) {
  std::deque<internal::Generating> all;
  std::vector<tiercel_batch_entry> arguments;
  for (const Entry& entry : entries) {
    arguments.push_back(all.emplace_back(entry).arguments());
  }
  std::vector<const tiercel_batch_entry*> list;
  for (const tiercel_batch_entry& one : arguments) list.push_back(&one);
  tiercel_error error = defaults<tiercel_error>();
  const tiercel_status status =
      tiercel_generate_batch(list.data(), list.size(), &error);
  std::vector<std::exception_ptr> thrown;
  for (const internal::Generating& one : all) {
    if (!one.ended()) throw Error(status, error.code, error.message);
    thrown.push_back(one.thrown());
  }
  return thrown;
}

// Makes entries on a thread of its own, on which their functions run. They may
// use the queue, but not wait for it or destroy it.
class Queue {
 public:
  // Told of an entry's end: null, or what ended it, as generate_batch returns
  // it.
  using OnEnd = std::function<void(std::exception_ptr)>;

  explicit Queue(const Model& model, const tiercel_queue_params& params =
                                         defaults<tiercel_queue_params>()) {
    internal::make([&](tiercel_error* error) {
      tiercel_queue* queue = nullptr;
      const tiercel_status status =
          tiercel_queue_create(model.get(), &params, &queue, error);
      queue_.reset(queue);
      return status;
    });
  }

  // Adds an entry, and returns at once. The prompt is copied. If it throws,
  // `on_end` is not called.
  void add(Entry entry, OnEnd on_end = {}) {
    auto added = std::make_unique<Added>(std::move(entry), std::move(on_end));
    const tiercel_batch_entry arguments = added->arguments();
    internal::make([&](tiercel_error* error) {
      return tiercel_queue_add(get(), &arguments, end, error);
    });
    (void)added.release();  // `end` frees it, and may have done so
  }

  // The number of entries that have begun and not ended, and of those that wait
  // to begin.
  size_t running() const noexcept { return tiercel_queue_running(get()); }
  size_t waiting() const noexcept { return tiercel_queue_waiting(get()); }
  // Waits until every entry has ended.
  void wait() {
    internal::make([this](tiercel_error* error) {
      return tiercel_queue_wait(get(), error);
    });
  }

  // For functions of tiercel_queue.h; null in a queue that was moved from.
  tiercel_queue* get() const noexcept { return queue_.get(); }

 private:
  struct Added : internal::Generating {
    Added(Entry entry, OnEnd told)
        : Generating(std::move(entry)), on_end(std::move(told)) {}
    OnEnd on_end;
  };
  static void end(void* user_data, tiercel_status, const tiercel_error*) {
    const std::unique_ptr<Added> added(
        static_cast<Added*>(static_cast<internal::Generating*>(user_data)));
    if (added->on_end) added->on_end(added->thrown());
  }
  struct Free {
    void operator()(tiercel_queue* queue) const { tiercel_queue_free(queue); }
  };

  std::unique_ptr<tiercel_queue, Free> queue_;
};

}  // namespace v0
}  // namespace tiercel

#endif  // TIERCEL_QUEUE_HPP_

// Tiercel for C++17: tiercel.h with handles that free themselves, standard
// containers, and exceptions. The functions have the names of the C functions
// behind the prefixes tiercel_model_ and tiercel_session_; tiercel.h documents
// what they do.
//
//   tiercel::Model model("model.gguf");
//   tiercel::Session session(model);
//   session.prefill(model.tokenize("The falcon"));
//   std::cout << session.generate() << "\n";
//
// Every function may throw tiercel::Error, and whatever a callback throws,
// which ends the call. A callback that returns false ends it, too, without an
// error: the session holds what tiercel.h says. Only a call that would return
// what it then has not made, such as a model or tokens, throws an Error with
// the status TIERCEL_CANCELLED.
//
// Generations that are made at once are in tiercel_queue.hpp, measurements in
// tiercel_lab.hpp.
#ifndef TIERCEL_HPP_
#define TIERCEL_HPP_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "tiercel.h"

namespace tiercel {
// The library's own classes are in the namespace around this one.
inline namespace v0 {

// The error of a call: what() is its message, code() stable, "too_long".
class Error : public std::runtime_error {
 public:
  Error(tiercel_status status, const char* code, const char* message)
      : std::runtime_error(message),
        status_(status),
        code_(std::make_shared<const std::string>(code)) {}

  tiercel_status status() const noexcept { return status_; }
  const std::string& code() const noexcept { return *code_; }

 private:
  tiercel_status status_;
  // Shared, since copying an exception must not throw.
  std::shared_ptr<const std::string> code_;
};

// A struct of tiercel.h with its defaults.
template <typename Struct>
Struct defaults() {
  return TIERCEL_INIT(Struct);
}

using Progress = std::function<bool(uint64_t done, uint64_t total)>;
// Takes the logits of the token after ids[index].
using OnRow = std::function<bool(size_t index, const float* logits)>;

// A question about a text, as tiercel_reading has it.
struct Reading {
  size_t begin = 0;
  size_t end = 0;
  size_t asked = 0;
  size_t answer = 0;
  std::vector<std::vector<int32_t>> others = {};
};
// The share of each run of the text in what a question attended to more than
// others did, and the excess (tiercel_reading).
struct Attention {
  std::vector<float> shares = {};
  double excess = 0;
};

// Limits for a text, as tiercel_text_limits has them.
struct TextLimits {
  size_t most_tokens = 0;
  Progress progress = {};
};

struct LogProb {
  int32_t id;
  float log_prob;
};
struct Token {
  int32_t id;
  std::string_view text;
  std::string_view thought;
  // With `log_probs` of the sampling: as tiercel_token has them.
  float log_prob = 0;
  std::vector<LogProb> top = {};
};
using OnToken = std::function<bool(const Token& token)>;

// The tokens that may follow an output: all, until a mask forbids some.
class AllowedTokens {
 public:
  AllowedTokens(uint32_t* words, size_t count) : words_(words), count_(count) {}

  // The ids are those of the vocabulary.
  bool has(int32_t id) const { return (word(id) & bit(id)) != 0; }
  void allow(int32_t id) { word(id) |= bit(id); }
  void forbid(int32_t id) { word(id) &= ~bit(id); }
  void forbid_all() {
    for (size_t i = 0; i < count_; ++i) words_[i] = 0;
  }
  // The bits as tiercel_mask has them.
  uint32_t* words() { return words_; }
  size_t count() const { return count_; }

 private:
  static uint32_t bit(int32_t id) { return uint32_t{1} << (id % 32); }
  uint32_t& word(int32_t id) const { return words_[id / 32]; }

  uint32_t* words_;
  size_t count_;
};
// See tiercel_mask: the same output must always get the same tokens.
using Mask = std::function<bool(const std::vector<int32_t>& output,
                                AllowedTokens& allowed)>;

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
  std::string reasoning = {};
};

namespace internal {

// A callback on its way through the library: an exception waits in it.
template <typename Function>
class Callback {
 public:
  explicit Callback(const Function& function) : function_(function) {}

  // Calls the function; not 0: the call is to end.
  template <typename... Args>
  int operator()(Args&&... args) {
    if (!function_) return 0;
    try {
      stopped_ = !function_(args...);
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind&) {  // the thread ends
      throw;
#endif
    } catch (...) {
      thrown_ = std::current_exception();
    }
    return ended();
  }

  // True if it is the function that ended the call.
  bool ended() const { return stopped_ || thrown_ != nullptr; }
  // Throws what the function threw, or the error of the call, unless it ended
  // for the function.
  void check(tiercel_status status, const tiercel_error& error) const {
    rethrow();
    if (status == TIERCEL_OK) return;
    if (status == TIERCEL_CANCELLED && stopped_) return;
    throw Error(status, error.code, error.message);
  }
  // Throws what the function threw, if it did.
  void rethrow() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  const Function& function_;
  bool stopped_ = false;
  std::exception_ptr thrown_;
};

inline int on_progress(void* user_data, uint64_t done, uint64_t total) {
  return (*static_cast<Callback<Progress>*>(user_data))(done, total);
}

inline int call(Callback<OnToken>& callback, const tiercel_token* token) {
  const auto view = [](const char* text, size_t bytes) {
    return bytes == 0 ? std::string_view() : std::string_view(text, bytes);
  };
  Token given = {token->id, view(token->text, token->text_bytes),
                 view(token->thought, token->thought_bytes), token->log_prob};
  given.top.reserve(static_cast<size_t>(token->num_top));
  for (int32_t i = 0; i < token->num_top; ++i) {
    given.top.push_back({token->top_ids[i], token->top_log_probs[i]});
  }
  return callback(given);
}

inline int on_token(void* user_data, const tiercel_token* token) {
  return call(*static_cast<Callback<OnToken>*>(user_data), token);
}

inline int on_mask(void* user_data, const int32_t* output, size_t count,
                   uint32_t* allowed, size_t words) {
  AllowedTokens tokens(allowed, words);
  return (*static_cast<Callback<Mask>*>(user_data))(
      std::vector<int32_t>(output, output + count), tokens);
}

// Makes a call that needs no callback: `call(&error)`.
template <typename Call>
void make(Call call) {
  tiercel_error error = defaults<tiercel_error>();
  const tiercel_status status = call(&error);
  if (status != TIERCEL_OK) throw Error(status, error.code, error.message);
}

// Makes a call that reports its progress: `call(callback, user_data, &error)`.
template <typename Call>
void make(const Progress& progress, Call call) {
  Callback<Progress> callback(progress);
  tiercel_error error = defaults<tiercel_error>();
  const tiercel_status status = call(on_progress, &callback, &error);
  callback.check(status, error);
}

// Makes a call that reports its progress and is whole or an error:
// `call(callback, user_data)`.
template <typename Call>
tiercel_status make_whole(const Progress& progress, Call call) {
  Callback<Progress> callback(progress);
  const tiercel_status status = call(on_progress, &callback);
  callback.rethrow();
  return status;
}

// Makes a call that fills a buffer, `call(items, &size, &error)`, with room for
// `guess` items, and once more with the room that it asks for.
template <typename Buffer, typename Call>
Buffer fill(size_t guess, Call call) {
  Buffer buffer(guess, typename Buffer::value_type());
  size_t size = guess;
  tiercel_error error = defaults<tiercel_error>();
  tiercel_status status = call(buffer.data(), &size, &error);
  if (status == TIERCEL_BUFFER_TOO_SMALL) {
    buffer.resize(size);
    status = call(buffer.data(), &size, &error);
  }
  if (status != TIERCEL_OK) throw Error(status, error.code, error.message);
  buffer.resize(size);
  return buffer;
}

// The same for JSON, whose size counts a NUL.
template <typename Call>
std::string fill_json(Call call) {
  std::string json = fill<std::string>(size_t{1} << 16, call);
  json.pop_back();
  return json;
}

// The same for the tokens of a text: `call(&limits, ids, &size, &error)`.
template <typename Call>
std::vector<int32_t> fill_ids(const TextLimits& limits, size_t guess,
                              Call call) {
  auto within = defaults<tiercel_text_limits>();
  within.most_tokens = limits.most_tokens;
  if (limits.most_tokens > 0) guess = std::min(guess, limits.most_tokens);
  return fill<std::vector<int32_t>>(
      guess, [&](int32_t* ids, size_t* size, tiercel_error* error) {
        return make_whole(limits.progress, [&](auto callback, void* user) {
          within.progress = callback;
          within.user_data = user;
          return call(&within, ids, size, error);
        });
      });
}

struct Free {
  void operator()(tiercel_model* model) const { tiercel_model_free(model); }
  void operator()(tiercel_session* session) const {
    tiercel_session_free(session);
  }
  void operator()(tiercel_detokenizer* detokenizer) const {
    tiercel_detokenizer_free(detokenizer);
  }
};

}  // namespace internal

// A model; may be moved and be used from any thread.
class Model {
 public:
  explicit Model(const std::string& path, const Progress& progress = {})
      : Model(path, defaults<tiercel_model_params>(), progress) {}
  // The path, and the callback for progress, of `params` are not used.
  Model(const std::string& path, tiercel_model_params params,
        const Progress& progress = {}) {
    params.path = path.c_str();
    internal::make(progress, [&](auto callback, void* user, auto* error) {
      params.progress = callback;
      params.user_data = user;
      tiercel_model* model = nullptr;
      const tiercel_status status = tiercel_model_open(&params, &model, error);
      model_.reset(model);
      return status;
    });
    if (model_ == nullptr) {
      throw Error(TIERCEL_CANCELLED, "cancelled", "opening was stopped");
    }
  }

  void load(const Progress& progress = {}) {
    internal::make(progress, [&](auto callback, void* user, auto* error) {
      return tiercel_model_load(get(), callback, user, error);
    });
  }

  void set_threads(int32_t threads) {
    internal::make([&](tiercel_error* error) {
      return tiercel_model_set_threads(get(), threads, error);
    });
  }
  void trim() {
    internal::make(
        [&](tiercel_error* error) { return tiercel_trim(get(), error); });
  }

  tiercel_model_info info() const {
    auto info = defaults<tiercel_model_info>();
    internal::make([&](tiercel_error* error) {
      return tiercel_model_get_info(get(), &info, error);
    });
    return info;
  }
  // JSON.
  std::string describe() const {
    return internal::fill_json([&](char* json, size_t* size, auto* error) {
      return tiercel_model_describe(get(), json, size, error);
    });
  }
  std::string plan(const tiercel_session_params& params =
                       defaults<tiercel_session_params>()) const {
    return internal::fill_json([&](char* json, size_t* size, auto* error) {
      return tiercel_plan(get(), &params, json, size, error);
    });
  }
  // Measures the rates of this machine, which plans and sessions read.
  tiercel_measurement measure(const tiercel_session_params& params,
                              double again_seconds = 0,
                              const Progress& progress = {}) const {
    auto measurement = defaults<tiercel_measurement>();
    measurement.again_seconds = again_seconds;
    internal::make([&](tiercel_error* error) {
      return internal::make_whole(progress, [&](auto callback, void* user) {
        return tiercel_measure(get(), &params, callback, user, &measurement,
                               error);
      });
    });
    return measurement;
  }
  // The number of the first `ids` that such a session finds in its prompt
  // cache.
  int64_t cached_tokens(const tiercel_session_params& params,
                        const std::vector<int32_t>& ids,
                        const Progress& progress = {}) const {
    int64_t tokens = 0;
    internal::make([&](tiercel_error* error) {
      return internal::make_whole(progress, [&](auto callback, void* user) {
        return tiercel_cached_tokens(get(), &params, ids.data(), ids.size(),
                                     callback, user, &tokens, error);
      });
    });
    return tokens;
  }
  // The number of ranks over which to open the checkpoint for such sessions.
  int64_t choose_ranks(const tiercel_session_params& params =
                           defaults<tiercel_session_params>()) const {
    int64_t ranks = 0;
    internal::make([&](tiercel_error* error) {
      return tiercel_choose_ranks(get(), &params, &ranks, error);
    });
    return ranks;
  }
  // Throws unless `draft` may draft for this model.
  void check_draft(const Model& draft) const {
    internal::make([&](tiercel_error* error) {
      return tiercel_check_draft(get(), draft.get(), error);
    });
  }

  // The beginning of a text, as a checkpoint begins texts: flags may be 0 for
  // one in the midst.
  std::vector<int32_t> tokenize(std::string_view text,
                                uint32_t flags = TIERCEL_ADD_BOS,
                                const TextLimits& limits = {}) const {
    return internal::fill_ids(
        limits, text.size() + 1,
        [&](auto* within, int32_t* ids, size_t* size, auto* error) {
          return tiercel_tokenize(get(), text.data(), text.size(), flags,
                                  within, ids, size, error);
        });
  }
  std::string detokenize(const std::vector<int32_t>& ids,
                         uint32_t flags = 0) const {
    return internal::fill<std::string>(
        8 * ids.size(), [&](char* text, size_t* size, auto* error) {
          return tiercel_detokenize(get(), ids.data(), ids.size(), flags, text,
                                    size, error);
        });
  }
  std::vector<int32_t> chat_tokens(
      const std::vector<Message>& messages,
      const tiercel_chat_settings& settings = defaults<tiercel_chat_settings>(),
      const TextLimits& limits = {}) const {
    std::vector<tiercel_message> views;
    size_t guess = 1024;
    for (const Message& message : messages) {
      auto view = defaults<tiercel_message>();
      view.role = message.role.c_str();
      view.content = message.content.data();
      view.content_bytes = message.content.size();
      view.reasoning = message.reasoning.data();
      view.reasoning_bytes = message.reasoning.size();
      views.push_back(view);
      guess += message.content.size() + message.reasoning.size();
    }
    return internal::fill_ids(
        limits, guess,
        [&](auto* within, int32_t* ids, size_t* size, auto* error) {
          return tiercel_chat_tokens_with(get(), views.data(), views.size(),
                                          &settings, within, ids, size, error);
        });
  }

  // For functions of tiercel.h; null in a model that was moved from.
  tiercel_model* get() const noexcept { return model_.get(); }

 private:
  std::unique_ptr<tiercel_model, internal::Free> model_;
};

// Decodes tokens that come one by one, behind those of `before`. It may outlive
// its model.
class Detokenizer {
 public:
  explicit Detokenizer(const Model& model,
                       const std::vector<int32_t>& before = {}) {
    internal::make([&](tiercel_error* error) {
      tiercel_detokenizer* made = nullptr;
      const tiercel_status status = tiercel_detokenizer_create(
          model.get(), before.data(), before.size(), &made, error);
      detokenizer_.reset(made);
      return status;
    });
  }

  // The text that a token completes; it stays until the next call.
  std::string_view add(int32_t id) {
    return give([&](const char** text, size_t* size, tiercel_error* error) {
      return tiercel_detokenizer_add(get(), id, text, size, error);
    });
  }
  // Ends the text: what no token will complete.
  std::string_view end() {
    return give([&](const char** text, size_t* size, tiercel_error* error) {
      return tiercel_detokenizer_end(get(), text, size, error);
    });
  }

  tiercel_detokenizer* get() const noexcept { return detokenizer_.get(); }

 private:
  template <typename Call>
  static std::string_view give(Call call) {
    const char* text = nullptr;
    size_t size = 0;
    internal::make(
        [&](tiercel_error* error) { return call(&text, &size, error); });
    return {text, size};
  }

  std::unique_ptr<tiercel_detokenizer, internal::Free> detokenizer_;
};

// A sequence of tokens with its KV cache. It may outlive its model.
class Session {
 public:
  explicit Session(const Model& model, const tiercel_session_params& params =
                                           defaults<tiercel_session_params>()) {
    internal::make([&](tiercel_error* error) {
      tiercel_session* session = nullptr;
      const tiercel_status status =
          tiercel_session_create(model.get(), &params, &session, error);
      session_.reset(session);
      return status;
    });
  }

  Session fork() const {
    Session copy;
    internal::make([&](tiercel_error* error) {
      tiercel_session* session = nullptr;
      const tiercel_status status =
          tiercel_session_fork(get(), &session, error);
      copy.session_.reset(session);
      return status;
    });
    return copy;
  }

  void prefill(const std::vector<int32_t>& ids, const Progress& progress = {}) {
    internal::make(progress, [&](auto callback, void* user, auto* error) {
      return tiercel_session_prefill(get(), ids.data(), ids.size(), callback,
                                     user, error);
    });
  }
  void read(const std::vector<int32_t>& ids, const Progress& progress = {}) {
    internal::make(progress, [&](auto callback, void* user, auto* error) {
      return tiercel_session_read(get(), ids.data(), ids.size(), callback, user,
                                  error);
    });
  }

  // Returns the text, without the thought where `sampling` splits it off. A
  // `mask` takes the place of that of `sampling`.
  std::string generate(tiercel_sampling sampling = defaults<tiercel_sampling>(),
                       const OnToken& on_token = {}, const Mask& mask = {}) {
    std::string text;
    const OnToken keep = [&](const Token& token) {
      text.append(token.text);
      return !on_token || on_token(token);
    };
    internal::Callback<OnToken> callback(keep);
    internal::Callback<Mask> masking(mask);
    if (mask) {
      sampling.mask = internal::on_mask;
      sampling.mask_user_data = &masking;
    }
    tiercel_error error = defaults<tiercel_error>();
    const tiercel_status status = tiercel_session_generate(
        get(), &sampling, internal::on_token, &callback, &error);
    if (masking.ended()) {
      masking.check(status, error);
    } else {
      callback.check(status, error);
    }
    return text;
  }

  // Appends tokens, `rows_per_step` (0: the library's choice) at a time, and
  // gives the logits of each.
  void score(const std::vector<int32_t>& ids, size_t rows_per_step,
             const OnRow& on_row) {
    internal::Callback<OnRow> callback(on_row);
    tiercel_error error = defaults<tiercel_error>();
    const tiercel_status status = tiercel_session_score(
        get(), ids.data(), ids.size(), rows_per_step,
        [](void* user_data, size_t index, const float* logits) {
          return (*static_cast<internal::Callback<OnRow>*>(user_data))(index,
                                                                       logits);
        },
        &callback, &error);
    callback.check(status, error);
  }

  std::vector<int32_t> ids() const {
    return internal::fill<std::vector<int32_t>>(
        length(), [&](int32_t* ids, size_t* size, auto* error) {
          return tiercel_session_ids(get(), ids, size, error);
        });
  }
  size_t length() const noexcept { return tiercel_session_length(get()); }
  // Layers of the prompt that were finished before, and that are on disk.
  int32_t resumed() const noexcept { return tiercel_session_resumed(get()); }
  int32_t kept() const noexcept { return tiercel_session_kept(get()); }
  void truncate(size_t length) {
    internal::make([&](tiercel_error* error) {
      return tiercel_session_truncate(get(), length, error);
    });
  }
  void trim() {
    internal::make([&](tiercel_error* error) {
      return tiercel_session_trim(get(), error);
    });
  }

  tiercel_generation generation() const {
    auto generation = defaults<tiercel_generation>();
    internal::make([&](tiercel_error* error) {
      return tiercel_session_get_generation(get(), &generation, error);
    });
    return generation;
  }
  // JSON.
  std::string report() const {
    return internal::fill_json([&](char* json, size_t* size, auto* error) {
      return tiercel_session_report(get(), json, size, error);
    });
  }
  // The seconds of each token of the last generation since the one before it.
  std::vector<double> token_seconds() const {
    return internal::fill<std::vector<double>>(
        256, [&](double* seconds, size_t* size, auto* error) {
          return tiercel_session_token_seconds(get(), seconds, size, error);
        });
  }
  Attention attended(const Reading& in, const Progress& progress = {}) {
    std::vector<const int32_t*> ids;
    std::vector<size_t> sizes;
    for (const std::vector<int32_t>& other : in.others) {
      ids.push_back(other.data());
      sizes.push_back(other.size());
    }
    auto reading = defaults<tiercel_reading>();
    reading.begin = in.begin;
    reading.end = in.end;
    reading.asked = in.asked;
    reading.answer = in.answer;
    reading.others = ids.data();
    reading.other_sizes = sizes.data();
    reading.num_others = ids.size();
    Attention found;
    reading.excess = &found.excess;
    const size_t tokens = in.end - std::min(in.begin, in.end);
    found.shares = internal::fill<std::vector<float>>(
        tokens / TIERCEL_RUN_TOKENS + 1,
        [&](float* shares, size_t* size, auto* error) {
          return internal::make_whole(progress, [&](auto callback, void* user) {
            return tiercel_session_attended_beside(get(), &reading, callback,
                                                   user, shares, size, error);
          });
        });
    return found;
  }
  std::vector<float> attended(size_t begin, size_t end, size_t asked,
                              size_t answer, const Progress& progress = {}) {
    return attended(Reading{begin, end, asked, answer}, progress).shares;
  }

  // May be called from any thread during a call, which then throws an Error
  // with the status TIERCEL_CANCELLED.
  void cancel() noexcept { tiercel_session_cancel(get()); }
  void clear_cancel() noexcept { tiercel_session_clear_cancel(get()); }

  // For functions of tiercel.h; null in a session that was moved from.
  tiercel_session* get() const noexcept { return session_.get(); }

 private:
  Session() = default;

  std::unique_ptr<tiercel_session, internal::Free> session_;
};

// Lists the policies, as JSON.
inline std::string policies() {
  return internal::fill_json([](char* json, size_t* size, auto* error) {
    return tiercel_policies(json, size, error);
  });
}
// Throws if a variable of the environment is wrong.
inline void check_environment() {
  internal::make(
      [](tiercel_error* error) { return tiercel_check_environment(error); });
}

// Lists the files of a cache_dir or prompt_cache_dir, as JSON.
inline std::string cache_list(const std::string& cache_dir) {
  return internal::fill_json([&](char* json, size_t* size, auto* error) {
    return tiercel_cache_list(cache_dir.c_str(), json, size, error);
  });
}
// Removes these files, and returns their number.
inline size_t cache_clear(const std::string& cache_dir) {
  size_t removed = 0;
  internal::make([&](tiercel_error* error) {
    return tiercel_cache_clear(cache_dir.c_str(), &removed, error);
  });
  return removed;
}

// A thread that does jobs one after the other, for a program whose main loop
// must not wait. What a job has to say is handed to `deliver`, which has the
// main loop call it: by g_idle_add, say, or QMetaObject::invokeMethod.
class Worker {
 public:
  using Function = std::function<void()>;
  using Deliver = std::function<void(Function)>;
  // Told of a job's end: null, or what the job threw.
  using Done = std::function<void(std::exception_ptr)>;

  explicit Worker(Deliver deliver)
      : deliver_(std::move(deliver)), thread_([this] { work(); }) {}
  // Waits for the job that was begun; others are dropped, and not told.
  ~Worker() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    came_.notify_one();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Has `job` done on the worker's thread, and `done` delivered behind it.
  void add(Function job, Done done = {}) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back({std::move(job), std::move(done)});
    }
    came_.notify_one();
  }
  // Delivers a job's news, such as a token.
  void tell(Function news) { deliver_(std::move(news)); }

 private:
  struct Job {
    Function run;
    Done done;
  };

  void work() {
    for (;;) {
      Job job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        came_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
        if (ends_) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      std::exception_ptr thrown;
      try {
        job.run();
      } catch (...) {
        thrown = std::current_exception();
      }
      if (job.done) {
        deliver_([done = std::move(job.done), thrown] { done(thrown); });
      }
    }
  }

  Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;  // the last, since it uses the others
};

}  // namespace v0
}  // namespace tiercel

#endif  // TIERCEL_HPP_

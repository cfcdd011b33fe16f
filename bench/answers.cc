// Answers prompts under several policies, with one model that stays open.
//
//   answers MODEL CACHE [threads=N]
//
// Writes {"version": TEXT, "context": N}, the latter the checkpoint's. Then it
// reads a JSON object a line, and writes one for each:
//
//   {"message": TEXT, "prefix": TEXT, "most": N, "policies": [POLICY, ...]}
//   -> {"prompt_tokens": N, "answers": [{"text": TEXT, "tokens": [ID, ...]}]}
//
// The message goes through the checkpoint's chat template, if it has one; the
// prefix stands behind it, where the model's answer begins. A policy has the
// fields of tiercel_policy by their names. All answers are greedy, of `most`
// tokens at most. They are generated at once, and a prompt that the first
// policy has read is opened from the prompt cache in the folder CACHE for the
// others that read it whole. Without policies the tokens are only counted. A
// request that fails gives {"error": SENTENCE}.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "include/tiercel.h"
#include "nlohmann/json.hpp"

namespace {

using Json = nlohmann::json;

// The prompt cache holds some texts of a small model. A text that takes more is
// computed for each policy.
constexpr uint64_t kCacheBytes = uint64_t{2} << 30;

// A call that failed, with the library's sentence.
struct Failure {
  std::string sentence;
};

void Need(tiercel_status status, const tiercel_error& error) {
  if (status != TIERCEL_OK) throw Failure{error.message};
}

// Calls fill(ids, size, error), which fills a buffer of the capacity *size.
template <typename Fill>
std::vector<int32_t> Ids(size_t capacity, const Fill& fill) {
  std::vector<int32_t> ids(capacity);
  size_t size = ids.size();
  tiercel_error error = TIERCEL_INIT(tiercel_error);
  tiercel_status status = fill(ids.data(), &size, &error);
  if (status == TIERCEL_BUFFER_TOO_SMALL) {
    ids.resize(size);
    status = fill(ids.data(), &size, &error);
  }
  Need(status, error);
  ids.resize(size);
  return ids;
}

class Answerer {
 public:
  Answerer(const char* path, std::string cache, int32_t threads)
      : cache_(std::move(cache)) {
    tiercel_model_params params = TIERCEL_INIT(tiercel_model_params);
    params.path = path;
    params.threads = threads;
    tiercel_error error = TIERCEL_INIT(tiercel_error);
    Need(tiercel_model_open(&params, &model_, &error), error);
    info_ = TIERCEL_INIT(tiercel_model_info);
    Need(tiercel_model_get_info(model_, &info_, &error), error);
  }
  ~Answerer() { tiercel_model_free(model_); }
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;

  Json About() const {
    return {{"version", tiercel_version()}, {"context", info_.context}};
  }
  Json Answer(const Json& request) const {
    const std::vector<int32_t> prompt =
        Prompt(request.at("message"), request.at("prefix"));
    Json document = {{"prompt_tokens", prompt.size()}};
    if (request.at("policies").empty()) return document;
    tiercel_sampling sampling = TIERCEL_INIT(tiercel_sampling);
    sampling.max_tokens = request.at("most");
    const auto context =
        static_cast<int64_t>(prompt.size()) + sampling.max_tokens;
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<const tiercel_batch_entry*> entries;
    for (const Json& policy : request.at("policies")) {
      sessions.push_back(std::make_unique<Session>(*this, policy, context));
      sessions.back()->Read(prompt, &sampling);
      entries.push_back(&sessions.back()->entry());
    }
    tiercel_error error = TIERCEL_INIT(tiercel_error);
    Need(tiercel_generate_batch(entries.data(), entries.size(), &error), error);
    for (const auto& session : sessions) {
      document["answers"].push_back(session->output());
    }
    return document;
  }

 private:
  // A text that is read, and gone on with, under one policy.
  class Session {
   public:
    Session(const Answerer& owner, const Json& policy, int64_t context) {
      tiercel_policy of_policy = TIERCEL_INIT(tiercel_policy);
      const auto text = [&policy](const char* key) -> const char* {
        const auto found = policy.find(key);
        if (found == policy.end()) return nullptr;
        return found->get_ref<const std::string&>().c_str();
      };
      const auto number = [&policy](const char* key) {
        return policy.value(key, int64_t{0});
      };
      of_policy.name = text("name");
      of_policy.form = text("form");
      of_policy.draft = text("draft");
      of_policy.verify = text("verify");
      of_policy.settings = text("settings");
      of_policy.chunk = static_cast<int32_t>(number("chunk"));
      of_policy.budget = number("budget");
      of_policy.sink = number("sink");
      of_policy.window = number("window");
      tiercel_session_params params = TIERCEL_INIT(tiercel_session_params);
      params.context = context;
      params.policy = &of_policy;
      params.prompt_cache_dir = owner.cache_.c_str();
      params.prompt_cache_bytes = kCacheBytes;
      Need(tiercel_session_create(owner.model_, &params, &session_, &error_),
           error_);
    }
    ~Session() { tiercel_session_free(session_); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void Read(const std::vector<int32_t>& prompt,
              const tiercel_sampling* sampling) {
      Need(tiercel_session_prefill(session_, prompt.data(), prompt.size(),
                                   nullptr, nullptr, &error_),
           error_);
      entry_.session = session_;
      entry_.sampling = sampling;
      entry_.on_token = &Session::OnToken;
      entry_.user_data = this;
    }
    const tiercel_batch_entry& entry() const { return entry_; }
    Json output() const { return {{"text", text_}, {"tokens", tokens_}}; }

   private:
    static int OnToken(void* to, const tiercel_token* token) {
      auto& own = *static_cast<Session*>(to);
      own.tokens_.push_back(token->id);
      own.text_.append(token->text, token->text_bytes);
      return 0;
    }

    tiercel_error error_ = TIERCEL_INIT(tiercel_error);
    tiercel_session* session_ = nullptr;
    tiercel_batch_entry entry_ = TIERCEL_INIT(tiercel_batch_entry);
    std::vector<int32_t> tokens_;
    std::string text_;
  };

  std::vector<int32_t> Prompt(const std::string& message,
                              const std::string& prefix) const {
    tiercel_message user = TIERCEL_INIT(tiercel_message);
    user.role = "user";
    user.content = message.data();
    user.content_bytes = message.size();
    std::vector<int32_t> ids =
        info_.has_template != 0
            ? Ids(message.size() + 64,
                  [&](int32_t* to, size_t* size, tiercel_error* error) {
                    return tiercel_chat_tokens(model_, &user, 1, nullptr, to,
                                               size, error);
                  })
            : Tokens(message + "\n\n", TIERCEL_ADD_BOS);
    const std::vector<int32_t> behind = Tokens(prefix, 0);
    ids.insert(ids.end(), behind.begin(), behind.end());
    return ids;
  }
  std::vector<int32_t> Tokens(const std::string& text, uint32_t flags) const {
    return Ids(text.size() + 1,
               [&](int32_t* to, size_t* size, tiercel_error* error) {
                 return tiercel_tokenize(model_, text.data(), text.size(),
                                         flags, nullptr, to, size, error);
               });
  }

  const std::string cache_;
  tiercel_model* model_ = nullptr;
  tiercel_model_info info_;
};

Json AnswerOrError(const Answerer& answerer, const std::string& line) {
  try {
    return answerer.Answer(Json::parse(line));
  } catch (const Failure& failure) {
    return {{"error", failure.sentence}};
  } catch (const Json::exception& wrong) {
    return {{"error", wrong.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string threads = "threads=";
  const std::string last = argc == 4 ? argv[3] : threads + "0";
  if (argc < 3 || argc > 4 || last.rfind(threads, 0) != 0) {
    std::cerr << "usage: answers MODEL CACHE [threads=N]\n";
    return 2;
  }
  try {
    const Answerer answerer(argv[1], argv[2],
                            std::atoi(last.c_str() + threads.size()));
    std::cout << answerer.About().dump() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << AnswerOrError(answerer, line).dump() << std::endl;
    }
  } catch (const Failure& failure) {
    std::cerr << "answers: " << failure.sentence << "\n";
    return 1;
  }
  return 0;
}

// Random lives of sessions through tiercel.h, each beside a mirror: a session
// without tiers, ranks, drafts or a past that is given the same tokens.
// Whatever was done, stopped or refused, tokens and the bits of the next logits
// are the mirror's.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "include/tiercel.h"
#include "kernels/system/faults.h"
#include "kernels/system/testing.h"
#include "nlohmann/json.hpp"
#include "runtime/api/api_fixture_for_test.h"
#include "runtime/api/boundary.h"
#include "tests/golden.h"
#include "tests/tiers.h"
#include "tests/trials.h"

namespace tiercel::session_trial_test {
namespace {

using api_test::Sized;
using Ids = std::vector<int32_t>;

struct FreeModel {
  void operator()(tiercel_model* model) const { tiercel_model_free(model); }
};
struct FreeSession {
  void operator()(tiercel_session* s) const { tiercel_session_free(s); }
};
using ModelHandle = std::unique_ptr<tiercel_model, FreeModel>;
using SessionHandle = std::unique_ptr<tiercel_session, FreeSession>;

tiercel_policy PolicyOf(const char* name, const char* draft,
                        int32_t chunk = 0) {
  auto policy = Sized<tiercel_policy>();
  policy.name = name;
  policy.draft = draft;
  if (chunk > 0) {
    policy.chunk = chunk;
    policy.budget = 64;
    policy.sink = 8;
    policy.window = 16;
  }
  return policy;
}

tiercel_policy FormOf(tiercel_policy policy, const char* form,
                      const char* settings) {
  policy.form = form;
  policy.settings = settings;
  return policy;
}

// Policies with views that hold little of a text of hundreds of tokens. The
// plain form of "speed" is missing: its text depends on which of its tokens
// were generated.
std::vector<tiercel_policy> Policies() {
  return {PolicyOf("full", "none"),
          PolicyOf("full", "ngram"),
          PolicyOf("full", "self"),
          PolicyOf("triforce", "none", 8),
          PolicyOf("triforce", "self", 1),
          FormOf(PolicyOf("sadas", "ngram", 8), "verified", "think=on"),
          FormOf(PolicyOf("sadas", "none", 16), "verified", "think=off"),
          FormOf(PolicyOf("sfi", "ngram", 1), "verified", "drafted=8"),
          FormOf(PolicyOf("sadas", "none", 8), "plain", "think=on"),
          FormOf(PolicyOf("sfi", "none", 2), "plain", "interval=8"),
          FormOf(PolicyOf("speed", "none", 8), "verified", "cut=5")};
}

// A checkpoint of six layers of llama_chat, with its tokenizer.
const std::string& Checkpoint() {
  static const std::string path = [] {
    std::string to = Deepened("llama_chat");
    for (const char* file : {"/tokenizer.json", "/tokenizer_config.json"}) {
      std::filesystem::copy_file(CheckpointPath("llama_chat") + file,
                                 to + file);
    }
    return to;
  }();
  return path;
}

ModelHandle OpenHandle(const Model::Options& options) {
  return ModelHandle(new tiercel_model{OpenReference(options)});
}

// The model that gives the expected results.
tiercel_model* MirrorModel() {
  static const ModelHandle model =
      OpenHandle({.path = Checkpoint(), .machine = {.threads = 1}});
  return model.get();
}

class Trial {
 public:
  explicit Trial(uint64_t seed) : seed_(seed), random_(seed) {}

  void Run() {
    Open();
    for (int64_t ops = 8 + Below(12); ops > 0 && !Failed(); --ops) {
      Act();
      faults_.Disarm();
      if (!Failed() && Below(3) > 0) Check(OneOf(live_));
    }
    for (Life& life : live_) {
      if (!Failed()) Check(life);
    }
    if (Failed()) ADD_FAILURE() << history_;
  }

 private:
  struct Life {
    SessionHandle session;
    Ids tokens;
    bool answers = false;  // the end of its tokens may have been generated
  };

  // The next allocation, copy and gather that fail.
  struct Trouble {
    FailingCall allocation{Callee::kMemory, "allocate"};
    FailingCall copy{Callee::kLink, "copy"};
    FailingCall gather{Callee::kRank, "gather"};

    void Disarm() {
      for (FailAt* each : {&allocation, &copy, &gather}) each->Disarm();
    }
    bool Happened() const {
      return allocation.happened() || copy.happened() || gather.happened();
    }
  };

  static bool Failed() { return testing::Test::HasFailure(); }
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename T>
  T& OneOf(std::vector<T>& all) {
    return all[static_cast<size_t>(Below(std::ssize(all)))];
  }
  void Note(const std::string& what) { absl::StrAppend(&history_, "\n", what); }
  std::string NameOf(const Life& life) const {
    return absl::StrCat("session ", &life - live_.data(), " of ", live_.size(),
                        ", ", life.tokens.size(), " tokens: ");
  }

  // Makes tokens; most repeat runs of the text so far.
  Ids MoreOf(const Ids& tokens, int64_t count) {
    Ids more;
    while (std::ssize(more) < count) {
      if (tokens.size() > 20 && !OneIn(3)) {
        const int64_t begin = Below(std::ssize(tokens) - 10);
        const int64_t end =
            std::min(std::ssize(tokens), begin + 10 + Below(200));
        more.insert(more.end(), tokens.begin() + begin, tokens.begin() + end);
      } else {
        for (int i = 0; i < 20; ++i) {
          more.push_back(static_cast<int32_t>(3 + Below(kVocab - 3)));
        }
      }
    }
    more.resize(static_cast<size_t>(count));
    return more;
  }

  tiercel_session_params Params() const {
    auto params = Sized<tiercel_session_params>();
    params.context = context_;
    params.policy = &policy_;
    params.prompt_cache_dir =
        prompt_cache_.empty() ? nullptr : prompt_cache_.c_str();
    return params;
  }

  // {"tiers", "min_device_bytes"} of a session on a device of so many bytes.
  nlohmann::json Planned(Model::Options options, int64_t device_bytes) {
    options.weights = false;
    options.machine.simulation->bytes = device_bytes;
    const ModelHandle header = OpenHandle(options);
    return api_test::PlanOf(header.get(), Params());
  }

  // Chooses a place, a policy and a device for one session, and makes it.
  void Open();
  SessionHandle Create() {
    const tiercel_session_params params = Params();
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(model_.get(), &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    return SessionHandle(session);
  }

  // Decides whether the next call meets a fault, and which.
  void Arm() {
    if (!tiered_ || !OneIn(4)) return;
    const int64_t which = Below(ranks_ > 1 ? 3 : 2);
    FailAt& fault = which == 0   ? faults_.copy
                    : which == 1 ? faults_.allocation
                                 : faults_.gather;
    const int64_t n = 1 + (OneIn(2) ? Below(4) : Below(120));
    const bool stays = OneIn(3);
    fault.Arm(n, stays ? FailAt::kAll : 1);
    Note(absl::StrCat("  trouble ", which, " at ", n, stays ? " and on" : ""));
  }
  // Returns true if a call succeeded. If it failed it must have had a reason.
  bool Ended(tiercel_status status, bool stopped) {
    Note(absl::StrCat("  ", status, " ",
                      status != TIERCEL_OK ? error_.message : ""));
    if (status == TIERCEL_OK) return true;
    const bool reason =
        (stopped && status == TIERCEL_CANCELLED) ||
        (faults_.Happened() &&
         (status == TIERCEL_NO_DEVICE || status == TIERCEL_OUT_OF_MEMORY)) ||
        (lacks_ && live_.size() > 1 && status == TIERCEL_OUT_OF_MEMORY);
    EXPECT_TRUE(reason) << status << " " << error_.code << " "
                        << error_.message;
    return false;
  }

  // Prefills without a stop; returns true if that succeeded.
  bool Feed(Life& life, const Ids& ids) {
    if (!Ended(tiercel_session_prefill(life.session.get(), ids.data(),
                                       ids.size(), nullptr, nullptr, &error_),
               false)) {
      return false;
    }
    Give(life, ids);
    return true;
  }
  static void Give(Life& life, const Ids& ids) {
    life.tokens.insert(life.tokens.end(), ids.begin(), ids.end());
    life.answers = life.answers && ids.empty();
  }

  // Does something with one of the sessions.
  void Act();
  void Prefill(Life& life);
  void Read(Life& life);
  void Generate(Life& life);
  void Score(Life& life);
  void Truncate(Life& life);
  void Fork(size_t of);
  void TakeTurns(size_t one);
  void Fill(Life& life);
  void Reopen();
  void Misuse(Life& life);

  // A session that has only these tokens, under "full", or under the plain form
  // of a policy whose text is another one.
  SessionHandle Mirror(const Ids& tokens) {
    auto params = Sized<tiercel_session_params>();
    params.context = context_;
    if (is_plain_) params.policy = &policy_;
    tiercel_session* session = nullptr;
    EXPECT_EQ(tiercel_session_create(MirrorModel(), &params, &session, &error_),
              TIERCEL_OK)
        << error_.message;
    EXPECT_EQ(tiercel_session_prefill(session, tokens.data(), tokens.size(),
                                      nullptr, nullptr, &error_),
              TIERCEL_OK)
        << error_.message;
    return SessionHandle(session);
  }

  // The logits [ids, vocab] after each of `ids`, stopped after `stop` rows.
  tiercel_status Rows(tiercel_session* session, const Ids& ids,
                      size_t rows_per_step, int64_t stop,
                      std::vector<float>* all) {
    struct Sink {
      std::vector<float>* all;
      int64_t left;
    } sink = {all, stop};
    return tiercel_session_score(
        session, ids.data(), ids.size(), rows_per_step,
        [](void* data, size_t, const float* logits) -> int {
          auto* to = static_cast<Sink*>(data);
          to->all->insert(to->all->end(), logits, logits + kVocab);
          return --to->left == 0;
        },
        &sink, &error_);
  }

  // Generates tokens, stopped when there are so many.
  tiercel_status Text(tiercel_session* session,
                      const tiercel_sampling& sampling, int64_t stop,
                      Ids* ids) {
    struct Sink {
      Ids* ids;
      int64_t left;
    } sink = {ids, stop};
    return tiercel_session_generate(
        session, &sampling,
        [](void* data, const tiercel_token* token) -> int {
          auto* to = static_cast<Sink*>(data);
          to->ids->push_back(token->id);
          return --to->left == 0;
        },
        &sink, &error_);
  }

  // Checks that the session holds its tokens and gives the mirror's next
  // logits.
  void Check(Life& life);
  void CheckTokens(const Life& life) {
    Ids held(static_cast<size_t>(context_));
    size_t size = held.size();
    ASSERT_EQ(
        tiercel_session_ids(life.session.get(), held.data(), &size, &error_),
        TIERCEL_OK);
    held.resize(size);
    ASSERT_EQ(held, life.tokens) << NameOf(life);
  }

  static constexpr int64_t kVocab = 384;
  static constexpr int64_t kNeverStops = int64_t{1} << 40;

  const uint64_t seed_;
  std::mt19937_64 random_;
  tiercel_error error_ = Sized<tiercel_error>();
  std::string history_;
  Trouble faults_;
  bool tiered_ = false;
  bool lacks_ = false;  // one session has pages, its forks may lack them
  int ranks_ = 1;
  int64_t context_ = 0;
  std::string prompt_cache_;  // a folder; empty: none
  tiercel_policy policy_ = {};
  bool is_plain_ = false;
  bool has_view_ = false;  // on a device
  ModelHandle model_;
  std::vector<Life> live_;  // a session and its forks; ends before the model
};

void Trial::Open() {
  tiered_ = !OneIn(4);
  ranks_ = OneIn(3) ? 2 : 1;
  std::vector<tiercel_policy> policies = Policies();
  policy_ = OneOf(policies);
  is_plain_ = policy_.form != nullptr && policy_.form == std::string("plain");
  policy_.verify = OneIn(2) ? "coupled" : "residual";
  for (int32_t* gamma : {&policy_.gamma1, &policy_.gamma2}) {
    *gamma = OneIn(3) ? TIERCEL_ADAPTIVE : static_cast<int32_t>(Below(13));
  }
  context_ = 700 + Below(300);
  if (OneIn(6)) {
    prompt_cache_ = absl::StrCat(ScratchFolder(), "/texts", seed_);
    context_ = 1500;
  }
  Model::Options options = {
      .path = Checkpoint(),
      .machine = {.threads = 1 + static_cast<int>(Below(2))},
      .ranks = ranks_};
  if (tiered_) {
    options.machine.simulation = {.link = {kFast}};
    const int64_t least = Planned(options, 64)["min_device_bytes"];
    // The rank's device has room for some pages of a text, or for all of them.
    constexpr int64_t kPageBytes = 6 * 2 * 128 * 16 * 2;  // in all layers
    const int64_t more = Below(11) * kPageBytes;
    const nlohmann::json plan = Planned(options, least + more);
    has_view_ = plan["tiers"]["device"]["views"] > 0;
    lacks_ = OneIn(4);
    options.machine.simulation->bytes = least + more;
    if (lacks_) options.machine.host_memory_bytes = plan["tiers"]["host"]["kv"];
    Note(absl::StrCat("device of ", least, " + ", more, " bytes",
                      lacks_ ? ", a host tier for one session" : ""));
  }
  Note(absl::StrCat(policy_.name, " ", policy_.draft, " ",
                    policy_.form != nullptr ? policy_.form : "", ", ", ranks_,
                    " ranks, context ", context_,
                    prompt_cache_.empty() ? "" : ", texts"));
  model_ = OpenHandle(options);
  live_.push_back({Create(), {}});
}

void Trial::Act() {
  if (live_.size() == 4) live_.erase(live_.begin() + Below(4));
  Life& life = OneOf(live_);
  if (std::ssize(life.tokens) < 40) return Prefill(life);
  switch (Below(13)) {
    case 0:
    case 1:
      return Prefill(life);
    case 2:
      return Read(life);
    case 3:
      return Score(life);
    case 4:
      return Truncate(life);
    case 5:
    case 6:
      return Fork(static_cast<size_t>(&life - live_.data()));
    case 7:
      return live_.size() > 1
                 ? (void)live_.erase(live_.begin() + (&life - live_.data()))
                 : Reopen();
    case 8:
      return Misuse(life);
    case 9:
      return TakeTurns(static_cast<size_t>(&life - live_.data()));
    default:
      return Generate(life);
  }
}

void Trial::Prefill(Life& life) {
  const int64_t room = context_ - std::ssize(life.tokens);
  int64_t count = OneIn(3) ? 1 + Below(10) : 1 + Below(400);
  if (!prompt_cache_.empty() && life.tokens.empty()) count = 1100 + Below(100);
  const Ids ids = MoreOf(life.tokens, std::min(room, count));
  int64_t left = OneIn(4) ? 1 + Below(40) : 0;
  Note(absl::StrCat(NameOf(life), "prefill ", ids.size(), ", stop ", left));
  Arm();
  const bool stops = left > 0;
  const tiercel_status status = tiercel_session_prefill(
      life.session.get(), ids.data(), ids.size(),
      [](void* data, uint64_t, uint64_t) -> int {
        return --*static_cast<int64_t*>(data) == 0;
      },
      &left, &error_);
  if (Ended(status, stops)) {
    Give(life, ids);
  } else if (stops && OneIn(2)) {  // it goes on where it stopped
    faults_.Disarm();
    if (!Feed(life, ids)) return;
  }
  CheckTokens(life);
}

void Trial::Read(Life& life) {
  const int64_t kept = Below(std::ssize(life.tokens) + 1);
  Ids ids(life.tokens.begin(), life.tokens.begin() + kept);
  const Ids more =
      MoreOf(life.tokens, std::min(context_ - kept, 1 + Below(200)));
  ids.insert(ids.end(), more.begin(), more.end());
  int64_t left = OneIn(4) ? 1 + Below(40) : 0;
  Note(absl::StrCat(NameOf(life), "read ", kept, " and ", more.size(),
                    " more, stop ", left));
  Arm();
  const bool stops = left > 0;
  const bool ok = Ended(tiercel_session_read(
                            life.session.get(), ids.data(), ids.size(),
                            [](void* data, uint64_t, uint64_t) -> int {
                              return --*static_cast<int64_t*>(data) == 0;
                            },
                            &left, &error_),
                        stops);
  if (!ok) {
    const auto differ = std::mismatch(ids.begin(), ids.end(),
                                      life.tokens.begin(), life.tokens.end());
    ids.erase(differ.first, ids.end());
  }
  life.tokens = std::move(ids);
  CheckTokens(life);
}

void Trial::Generate(Life& life) {
  const int64_t room = context_ - std::ssize(life.tokens);
  if (room == 0) return Truncate(life);
  auto sampling = Sized<tiercel_sampling>();
  sampling.max_tokens = std::min(room, 1 + Below(24));
  sampling.ignore_eos = 1;
  sampling.seed = static_cast<uint64_t>(Below(1000));
  // Residual drafts have the model's distribution, but give another text.
  if (is_plain_ || policy_.verify == std::string("coupled")) {
    sampling.temperature = OneIn(3) ? 0 : 0.8f;
    sampling.top_k = OneIn(2) ? 0 : 20;
  }
  sampling.repeat_penalty = OneIn(3) ? 1.2f : 0;
  if (OneIn(3) && !life.answers) {  // the mirror was given all of its tokens
    sampling.dry_multiplier = 0.8f;
    sampling.dry_no_breakers = 1;
  }
  const int64_t stop = OneIn(4) ? 1 + Below(sampling.max_tokens) : kNeverStops;
  Ids expected;
  ASSERT_EQ(Text(Mirror(life.tokens).get(), sampling, kNeverStops, &expected),
            TIERCEL_OK)
      << error_.message;
  Note(absl::StrCat(NameOf(life), "generate ", sampling.max_tokens, ", stop ",
                    stop == kNeverStops ? 0 : stop));
  Arm();
  Ids ids;
  const bool ok = Ended(Text(life.session.get(), sampling, stop, &ids),
                        stop <= sampling.max_tokens);
  if (ok) {
    EXPECT_EQ(std::ssize(ids), sampling.max_tokens);
  }
  ASSERT_LE(ids.size(), expected.size());
  expected.resize(ids.size());
  ASSERT_EQ(ids, expected) << NameOf(life);
  life.tokens.insert(life.tokens.end(), ids.begin(), ids.end());
  life.answers = true;
  CheckTokens(life);
}

void Trial::Score(Life& life) {
  const int64_t room = context_ - std::ssize(life.tokens);
  const Ids ids = MoreOf(life.tokens, std::min(room, 1 + Below(30)));
  if (ids.empty()) return;
  const auto rows = static_cast<size_t>(is_plain_ ? Below(2) : Below(20));
  const int64_t stop = OneIn(4) ? 1 + Below(std::ssize(ids)) : kNeverStops;
  Note(absl::StrCat(NameOf(life), "score ", ids.size(), ", ", rows,
                    " rows at once, stop ", stop == kNeverStops ? 0 : stop));
  Arm();
  std::vector<float> all;
  const bool ok = Ended(Rows(life.session.get(), ids, rows, stop, &all),
                        stop <= std::ssize(ids));
  std::vector<float> expected;
  ASSERT_EQ(Rows(Mirror(life.tokens).get(), ids, 0, kNeverStops, &expected),
            TIERCEL_OK)
      << error_.message;
  ASSERT_LE(all.size(), expected.size());
  EXPECT_EQ(
      std::memcmp(all.data(), expected.data(), all.size() * sizeof(float)), 0);
  if (ok) {
    EXPECT_EQ(all.size(), expected.size());
    Give(life, ids);
  }
  CheckTokens(life);
}

void Trial::Truncate(Life& life) {
  const int64_t length = Below(std::ssize(life.tokens) + 1);
  Note(absl::StrCat(NameOf(life), "truncate to ", length));
  ASSERT_EQ(tiercel_session_truncate(life.session.get(),
                                     static_cast<size_t>(length), &error_),
            TIERCEL_OK);
  life.tokens.resize(static_cast<size_t>(length));
  CheckTokens(life);
}

// The fork is the last of `live_`.
void Trial::Fork(size_t of) {
  const Life& life = live_[of];
  Note(absl::StrCat(NameOf(life), "fork"));
  Arm();
  tiercel_session* copy = nullptr;
  const tiercel_status status =
      tiercel_session_fork(life.session.get(), &copy, &error_);
  EXPECT_EQ(copy != nullptr, status == TIERCEL_OK);
  // The fork takes a view of its own, for which no room is planned.
  if (has_view_ && status == TIERCEL_OUT_OF_MEMORY) return;
  if (Ended(status, false)) {
    Ids tokens = life.tokens;
    live_.push_back({SessionHandle(copy), std::move(tokens), life.answers});
  }
}

// A session and a fork that goes another way, both with nearly full contexts,
// take each other's pages off the device.
void Trial::TakeTurns(size_t one) {
  Fill(live_[one]);
  const size_t forks = live_.size();
  if (!Failed()) Fork(one);
  faults_.Disarm();
  if (Failed() || live_.size() == forks) return;
  Truncate(live_.back());
  if (!Failed()) Fill(live_.back());
  for (int turn = 0; turn < 2; ++turn) {
    for (Life* life : {&live_.back(), &live_[one]}) {
      if (!Failed()) Check(*life);
    }
  }
}

// Adds tokens until there is room for only a few.
void Trial::Fill(Life& life) {
  const int64_t count = context_ - std::ssize(life.tokens) - 1 - Below(10);
  if (count <= 0) return;
  const Ids ids = MoreOf(life.tokens, count);
  Note(absl::StrCat(NameOf(life), "fill with ", count));
  Arm();
  Feed(life, ids);
  faults_.Disarm();
  CheckTokens(life);
}

// The last session ends, and another one reads its tokens, which the prompt
// cache may have.
void Trial::Reopen() {
  Life& life = live_.front();
  Note(absl::StrCat(NameOf(life), "reopen"));
  life.session.reset();
  life.session = Create();
  life.answers = false;
  ASSERT_TRUE(Ended(
      tiercel_session_prefill(life.session.get(), life.tokens.data(),
                              life.tokens.size(), nullptr, nullptr, &error_),
      false));
  CheckTokens(life);
}

// Makes calls whose arguments are wrong.
void Trial::Misuse(Life& life) {
  tiercel_session* const session = life.session.get();
  Ids ids = MoreOf(life.tokens, 30);
  Note(absl::StrCat(NameOf(life), "misuse"));
  if (std::ssize(life.tokens) + 30 <= context_) {
    ids[static_cast<size_t>(Below(30))] = kVocab;
    EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                      nullptr, &error_),
              TIERCEL_INVALID_INPUT);
  }
  ids = MoreOf(life.tokens, context_ - std::ssize(life.tokens) + 1);
  EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_INVALID_INPUT);
  EXPECT_EQ(tiercel_session_truncate(session, life.tokens.size() + 1, &error_),
            TIERCEL_USAGE);
  auto sampling = Sized<tiercel_sampling>();
  sampling.temperature = -1;
  EXPECT_EQ(
      tiercel_session_generate(session, &sampling, nullptr, nullptr, &error_),
      TIERCEL_USAGE);
  if (std::ssize(life.tokens) == context_) return CheckTokens(life);
  tiercel_session_cancel(session);
  ids.resize(1);
  EXPECT_EQ(tiercel_session_prefill(session, ids.data(), ids.size(), nullptr,
                                    nullptr, &error_),
            TIERCEL_CANCELLED);
  CheckTokens(life);
}

void Trial::Check(Life& life) {
  CheckTokens(life);
  if (Failed() || std::ssize(life.tokens) == context_) return;
  const Ids probe = MoreOf({}, 1);
  Note(absl::StrCat(NameOf(life), "check"));
  std::vector<float> logits;
  if (!Ended(Rows(life.session.get(), probe, 0, kNeverStops, &logits), false)) {
    return CheckTokens(life);
  }
  std::vector<float> expected;
  ASSERT_EQ(Rows(Mirror(life.tokens).get(), probe, 0, kNeverStops, &expected),
            TIERCEL_OK)
      << error_.message;
  EXPECT_TRUE(SameBits(logits, expected)) << NameOf(life);
  ASSERT_EQ(
      tiercel_session_truncate(life.session.get(), life.tokens.size(), &error_),
      TIERCEL_OK);
}

TEST(SessionTrialTest, AnyLifeGivesWhatAPlainSessionGives) {
  for (const uint64_t seed : TrialSeeds(30)) {
    SCOPED_TRACE(absl::StrCat("TIERCEL_TRIAL_SEED=", seed));
    Trial(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tiercel::session_trial_test

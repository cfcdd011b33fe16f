#ifndef TIERCEL_RUNTIME_SESSION_BATCH_TEXTS_FOR_TEST_H_
#define TIERCEL_RUNTIME_SESSION_BATCH_TEXTS_FOR_TEST_H_

// Several questions about one text, each answered in its own way, at once or
// alone.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "runtime/plan/session_plan.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "runtime/session/batch.h"
#include "tests/drafting.h"
#include "tests/tiers.h"

namespace tiercel {

inline constexpr int64_t kForks = 3;
inline constexpr size_t kText = 760;  // tokens that all texts share

// A question about the text, and the way in which it is answered.
struct BatchJob {
  Ids question;
  GenerateParams params;
  PolicyParams policy = {};
};

class BatchTextsTest : public testing::Test {
 protected:
  using Job = BatchJob;

  static void SetUpTestSuite() { SetUpWith("llama_chat"); }
  static void SetUpWith(const std::string& checkpoint) {
    like_ =
        OpenReference({.path = Deepened(checkpoint), .machine = {.threads = 2}})
            .release();
    text_ = new Ids(RepeatedText(100, 7));
    text_->resize(kText);
    for (int32_t& id : *text_) {
      id %= static_cast<int32_t>(like_->config.vocab);
    }
  }
  static void TearDownTestSuite() {
    delete text_;
    delete like_;
  }

  // Options of a session under `policy` with so many forks.
  static SessionOptions OptionsOf(const PolicyParams& policy, int64_t forks) {
    SessionOptions options;
    options.context = 1024;
    options.forks = forks;
    options.fork_tokens = 250;
    return policy.OptionsFor(*like_, options);
  }
  // The model over `ranks` ranks, each on a device behind a link that holds the
  // least that sessions of `options` need, `host_layers` of its layers in the
  // host tier.
  static std::unique_ptr<Model> OpenTiered(const SessionOptions& options,
                                           int ranks, int host_layers = 0) {
    Model::Options of = like_->options;
    of.ranks = ranks;
    of.host_layers = host_layers;
    of.machine.simulation = {{.bytes = int64_t{1} << 40, .link = {kFast}}};
    of.weights = false;
    const auto header = OpenModel(of);
    const auto sizes = header->MeasureRanks().value();
    int64_t bytes = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const SessionSite site =
          SiteOf(*header, sizes[static_cast<size_t>(rank)], options,
                 header->machine->threads(), rank);
      bytes = std::max(bytes, site.LeastDeviceBytes(options.context));
    }
    of.machine.simulation = {{.bytes = bytes, .link = {kFast, 0}}};
    of.weights = true;
    return OpenModel(of);
  }
  // Every way in which steps are, or are not, passed together.
  static std::vector<PolicyParams> Policies() {
    PolicyParams full;
    PolicyParams ngram;
    ngram.proposer = Proposer::kNgram;
    PolicyParams sfi = SmallSfi();
    EXPECT_TRUE(sfi.Own<SfiParams>().Set("trigger=fixed").ok());
    PolicyParams plain_sfi = sfi;
    plain_sfi.form = PolicyForm::kPlain;
    PolicyParams speed;
    speed.policy = PolicyNamed("speed");
    speed.form = PolicyForm::kPlain;
    speed.view = kSmallView;
    PolicyParams trees = SmallTriforce();
    trees.branches = 2;
    return {full, ngram, SmallTriforce(), trees, sfi, plain_sfi, speed};
  }
  // Questions of different lengths, some of which end pages.
  static std::vector<Job> Jobs(const PolicyParams& policy) {
    std::vector<Job> jobs;
    for (const size_t length : {1, 70, 130, 200}) {
      const auto begin = text_->begin() + static_cast<ptrdiff_t>(length);
      Job job = {Ids(begin, begin + static_cast<ptrdiff_t>(length)),
                 DraftedParams(jobs.size() % 2 == 0 ? 0.0f : 0.9f, 40), policy};
      job.params.seed = length;
      jobs.push_back(std::move(job));
    }
    jobs[2].params.max_tokens = 17;
    return jobs;
  }
  // Forks of `first`, which reads the text, one for each job.
  static std::vector<std::unique_ptr<Session>> Forks(
      std::unique_ptr<Session> first, const std::vector<Job>& jobs) {
    std::vector<std::unique_ptr<Session>> sessions;
    EXPECT_TRUE(
        Prefill(*first, text_->data(), text_->size(), kNoProgress).ok());
    sessions.push_back(std::move(first));
    sessions.front()->runner().Rest();
    while (sessions.size() < jobs.size()) {
      sessions.push_back(sessions.front()->Fork().value());
    }
    return sessions;
  }
  // Such forks, each with its question.
  static std::vector<std::unique_ptr<Session>> Asked(
      std::unique_ptr<Session> first, const std::vector<Job>& jobs) {
    auto sessions = Forks(std::move(first), jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
      Ask(*sessions[i], jobs[i]);
      sessions[i]->runner().Rest();
    }
    return sessions;
  }
  static void Ask(Session& session, const Job& job) {
    const Ids& own = job.question;
    const absl::Status read =
        Prefill(session, own.data(), own.size(), kNoProgress).status();
    EXPECT_TRUE(read.ok()) << read;
  }
  // Each call begins with the question of a session that holds the text alone,
  // and ends with `after`.
  static std::vector<Report> AtOnce(
      const std::vector<Job>& jobs,
      const std::vector<std::unique_ptr<Session>>& sessions,
      Batch::Passes* passes = nullptr,
      absl::FunctionRef<void(size_t, const Report&)> after =
          [](size_t, const Report&) {}) {
    const auto batch = Batch::Create(*sessions.front()).value();
    std::vector<Report> reports(jobs.size());
    std::vector<Batch::Call> calls;
    for (size_t i = 0; i < jobs.size(); ++i) {
      calls.push_back({*sessions[i], [&, i] {
                         if (sessions[i]->sequence().tokens().size() == kText) {
                           Ask(*sessions[i], jobs[i]);
                         }
                         reports[i] = GenerateDrafted(
                             *sessions[i], jobs[i].params, jobs[i].policy);
                         after(i, reports[i]);
                       }});
    }
    EXPECT_TRUE(batch->Run(std::move(calls)).ok());
    for (const auto& session : sessions) session->runner().Rest();
    if (passes != nullptr) *passes = batch->passes();
    return reports;
  }
  // The texts without a link, each alone.
  static std::vector<Report> Expected(const std::vector<Job>& jobs) {
    std::vector<Report> reports;
    for (const Job& job : jobs) {
      const auto alone = Prefilled(*like_, *text_, OptionsOf(job.policy, 0));
      EXPECT_TRUE(
          Prefill(*alone, job.question.data(), job.question.size(), kNoProgress)
              .ok());
      reports.push_back(GenerateDrafted(*alone, job.params, job.policy));
      EXPECT_TRUE(reports.back().status.ok()) << reports.back().status;
    }
    return reports;
  }
  static inline Model* like_ = nullptr;
  static inline Ids* text_ = nullptr;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_BATCH_TEXTS_FOR_TEST_H_

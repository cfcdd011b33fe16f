// A session some of whose pages are on disk gives the same bytes as one with
// all of them in memory, reads from disk what offload/KV_FORMAT.md says, and
// survives a disk that fails.

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "offload/disk/faulty_disk_for_test.h"
#include "offload/move/disk_link.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::disk_pages_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kContext = 1700;

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

enum class Place { kInPlace, kNoHost, kSomeHost };

class DiskPagesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenReference({.path = Deepened("llama_rope_linear"),
                            .machine = {.threads = 2},
                            .rope_scale = 2})
                 .release();
    ids_ = new std::vector<int32_t>(RandomIds(1300, model_->config.vocab));
  }
  static void TearDownTestSuite() {
    delete ids_;
    delete model_;
  }

  std::string path() const { return folder_.path() + "/texts"; }
  Session::Options WithPromptCache(Session::Options options = {},
                                   DiskCalls& disk = GoodDisk()) const {
    options.context = kContext;
    options.texts = {.path = path(), .build = "a build", .disk = &disk};
    return options;
  }
  static std::unique_ptr<Session> InMemory(const Model& model,
                                           Session::Options options) {
    options.texts.reset();
    return MakeSession(model, options);
  }
  // The options of a model whose memory lacks room for a few pages of a session
  // with `options`.
  static Model::Options Short(const Model& like,
                              const Session::Options& options, Place place) {
    Model::Options with = like.options;
    const int64_t page = options.Layout(like.config).PageBytes();
    Session::Options in_memory = options;
    in_memory.texts.reset();
    if (place == Place::kInPlace) {
      const auto alone = OpenReference(like.options);  // without its sessions
      WeightSizes weights = alone->MeasureRanks()->front();
      weights.bytes = alone->machine->memory().used();
      const TierPlan plan =
          SiteOf(*alone, weights, options, alone->machine->threads())
              .PlanFor(options.context);
      with.machine.host_memory_bytes =
          plan.DeviceBytes() + plan.HostBytes() - 2 * page;
      return with;
    }
    with.machine.simulation = {
        {.bytes = BytesFor(like, in_memory, Budget::kMiddle), .link = {kFast}}};
    const int64_t pages = (options.context + kPageTokens - 1) / kPageTokens;
    with.machine.host_memory_bytes = place == Place::kNoHost
                                         ? 1
                                         : DiskLink::BufferBytes(page, pages) +
                                               4 * like.config.layers * page;
    return with;
  }
  // Opens a model with such memory; in place it computes on the CPU.
  static std::unique_ptr<Model> OpenAt(const Model& like,
                                       const Session::Options& options,
                                       Place place) {
    const Model::Options with = Short(like, options, place);
    return place == Place::kInPlace ? OpenReference(with) : OpenModel(with);
  }
  static Tiered At(const Model& like, const Session::Options& options,
                   Place place) {
    Tiered made;
    made.model = OpenAt(like, options, place);
    made.session = MakeSession(*made.model, options);
    EXPECT_GT(made.session->kv().plan().shape.disk_pages, 0);
    return made;
  }
  // A session whose pages fit in memory, which saves KV for others. A device
  // opens KV that a session on such a device has saved, and a GPU saves none if
  // its own memory holds all.
  static Tiered Keeper(const Session::Options& options) {
    if (TestedDevice() != DeviceKind::kCpu) {
      return MakeTiered(*model_, options, Budget::kMiddle);
    }
    Tiered made;
    made.session = MakeSession(*model_, options);
    return made;
  }
  static void Read(Session& session, const std::vector<int32_t>& ids) {
    const auto prefill = Prefill(session, ids.data(), ids.size(), kNoProgress);
    EXPECT_TRUE(prefill.ok()) << prefill.status();
  }
  static absl::Status Add(Session& session, int32_t id) {
    if (absl::Status s = session.Append(&id, 1); !s.ok()) return s;
    return session.CatchUp(Phase::kVerify);
  }
  // Waits until prefetched layers have arrived.
  static void Settle(const Session& session) {
    KvTier& tier = *session.kv().ranks()[0]->tier;
    for (const KvTier::Buffer& buffer : tier.buffers) {
      while (!tier.engine->Done(buffer.filled)) std::this_thread::yield();
    }
  }
  static void ExpectCounted(const Session& session) {
    Settle(session);
    const Traffic traffic = session.traffic();
    const int64_t page = session.kv().site().layout.PageBytes();
    EXPECT_EQ(traffic.disk.read_bytes,
              page * (traffic.moves.disk_pages + traffic.disk.read_pages));
    EXPECT_EQ(traffic.disk.written_bytes, page * traffic.moves.spilled_pages);
  }
  std::string TextFile() const {
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      return file.path();
    }
    return "";
  }

  static const Model* model_;
  static const std::vector<int32_t>* ids_;
  const FolderForTest folder_;
};
const Model* DiskPagesTest::model_ = nullptr;
const std::vector<int32_t>* DiskPagesTest::ids_ = nullptr;

// A prompt whose pages go to disk, and the same prompt opened from the cache
// and read in place, even after its file has lost its name.
TEST_F(DiskPagesTest, LogitsAreTheSameBytes) {
  for (const DType type : {DType::kF16, DType::kQ8_0}) {
    Session::Options types;
    types.type_k = types.type_v = type;
    const Session::Options options = WithPromptCache(types);
    const auto expected = InMemory(*model_, options);
    Read(*expected, *ids_);
    for (const Place place :
         {Place::kInPlace, Place::kNoHost, Place::kSomeHost}) {
      SCOPED_TRACE(static_cast<int>(place));
      for (const bool opened : {false, true}) {
        const Tiered made = At(*model_, options, place);
        Session& session = *made.session;
        Read(session, *ids_);
        EXPECT_THAT(session.warnings(), IsEmpty());
        if (opened) std::filesystem::remove_all(path());
        EXPECT_EQ(session.traffic().moves.spilled_pages > 0, !opened);
        expected->Truncate(ids_->size());
        ASSERT_TRUE(expected->CatchUp(Phase::kPrefill).ok());
        EXPECT_TRUE(SameBits(NextLogits(session), NextLogits(*expected)));
        for (const size_t rows : {1, 64, 100}) {
          const std::vector<int32_t> more(ids_->begin(), ids_->begin() + 100);
          EXPECT_TRUE(SameBits(AllLogits(session, more, rows),
                               AllLogits(*expected, more, rows)));
        }
        ExpectCounted(session);
      }
    }
  }
}

TEST_F(DiskPagesTest, EveryPolicyGivesTheSameText) {
  const auto model = OpenReference(
      {.path = CheckpointPath("llama_chat.gguf"), .machine = {.threads = 2}});
  const std::vector<int32_t> ids = RepeatedText(60, 20);
  PolicyParams sfi = {.policy = PolicyNamed("sfi"),
                      .form = PolicyForm::kPlain,
                      .verify = VerifyMode::kCoupled};
  sfi.Own<SfiParams>().budget = 40;
  sfi.Own<SfiParams>().sink = 2;
  sfi.Own<SfiParams>().window = 20;
  ASSERT_TRUE(sfi.Own<SfiParams>().Set("interval=8").ok());
  const PolicyParams policies[] = {{.policy = PolicyNamed("full")},
                                   {.policy = PolicyNamed("triforce"),
                                    .proposer = Proposer::kNgram,
                                    .verify = VerifyMode::kCoupled,
                                    .view = kSmallView},
                                   sfi};
  for (const PolicyParams& params : policies) {
    SCOPED_TRACE(params.policy->name());
    const Session::Options options =
        WithPromptCache(params.OptionsFor(*model, {}));
    const auto expected = InMemory(*model, options);
    Read(*expected, ids);
    const GenerateParams generate = DraftedParams(0.8f, 40);
    const Report text = GenerateDrafted(*expected, generate, params);
    ASSERT_TRUE(text.status.ok()) << text.status;
    std::filesystem::remove_all(path());
    for (int time = 0; time < 2; ++time) {  // computed, then opened
      const Tiered made = At(*model, options, Place::kNoHost);
      Read(*made.session, ids);
      const Report report = GenerateDrafted(*made.session, generate, params);
      ASSERT_TRUE(report.status.ok()) << report.status;
      EXPECT_EQ(report.tokens, text.tokens);
      ExpectCounted(*made.session);
    }
  }
}

TEST_F(DiskPagesTest, ForksAndStoppedPromptsAreTheSame) {
  const Session::Options options = WithPromptCache();
  const auto expected = InMemory(*model_, options);
  Read(*expected, *ids_);
  const Tiered made = At(*model_, options, Place::kInPlace);
  Session& session = *made.session;
  int calls = 0;
  const auto stopped = Prefill(session, ids_->data(), ids_->size(),
                               [&](uint64_t, uint64_t) { return ++calls < 5; });
  EXPECT_EQ(ClassOf(stopped.status()), ErrorClass::kCancelled);
  Read(session, *ids_);
  EXPECT_TRUE(SameBits(NextLogits(session), NextLogits(*expected)));
  const auto fork = session.Fork();
  ASSERT_TRUE(fork.ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Add(**fork, 5 + i).ok());
    ASSERT_TRUE(Add(session, 9 + i).ok());
  }
  const auto same = expected->Fork();
  ASSERT_TRUE(same.ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Add(**same, 5 + i).ok());
    ASSERT_TRUE(Add(*expected, 9 + i).ok());
  }
  EXPECT_TRUE(SameBits(NextLogits(**fork), NextLogits(**same)));
  EXPECT_TRUE(SameBits(NextLogits(session), NextLogits(*expected)));
}

// A page that cannot be read is one error; the next call succeeds.
TEST_F(DiskPagesTest, AnyReadMayFail) {
  const Session::Options options = WithPromptCache();
  { Read(*Keeper(options).session, *ids_); }
  const auto expected = InMemory(*model_, options);
  Read(*expected, *ids_);
  for (const int32_t id : {3, 4, 5}) ASSERT_TRUE(Add(*expected, id).ok());
  for (const int64_t fail_at : {0, 1, 5, 30, 70}) {
    SCOPED_TRACE(fail_at);
    FaultyDisk disk;
    disk.counts_writes = false;
    const Tiered made = At(*model_, WithPromptCache({}, disk), Place::kNoHost);
    Session& session = *made.session;
    Read(session, *ids_);
    Settle(session);
    disk.fail_at = disk.calls() + fail_at;
    int failures = 0;
    for (const int32_t id : {3, 4, 5}) {
      absl::Status status = Add(session, id);
      if (!status.ok()) {
        ++failures;
        EXPECT_EQ(CodeOf(status), "io_error") << status;
        status = session.CatchUp(Phase::kVerify);
      }
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_LE(failures, 1);
    EXPECT_TRUE(SameBits(NextLogits(session), NextLogits(*expected)));
  }
}

// A prompt still goes on from its own file later if the nameless file that its
// pages belong in takes none.
TEST_F(DiskPagesTest, AnUnfinishedPromptOutlivesADiskThatTakesNoPage) {
  struct Full : FaultyDisk {
    bool full = false;
    bool refused = false;
    ssize_t Write(int file, const std::byte* from, size_t bytes,
                  uint64_t offset) override {
      struct stat found = {};
      if (!full || fstat(file, &found) != 0 || found.st_nlink > 0) {
        return FaultyDisk::Write(file, from, bytes, offset);
      }
      refused = true;
      errno = EIO;
      return -1;
    }
  } disk;
  const auto stop_behind = [&](Session& session, double share) {
    const auto stopped = Prefill(session, ids_->data(), ids_->size(),
                                 [&](uint64_t done, uint64_t total) {
                                   return static_cast<double>(done) <
                                          share * static_cast<double>(total);
                                 });
    EXPECT_EQ(ClassOf(stopped.status()), ErrorClass::kCancelled);
  };
  stop_behind(*Keeper(WithPromptCache()).session, 0.6);
  {
    const Tiered made = At(*model_, WithPromptCache({}, disk), Place::kNoHost);
    disk.full = true;
    stop_behind(*made.session, 0.1);
    EXPECT_TRUE(disk.refused);
    EXPECT_THAT(made.session->warnings(), Contains(HasSubstr("begins anew")));
  }
  const Tiered keeper = Keeper(WithPromptCache());
  const auto prefill =
      Prefill(*keeper.session, ids_->data(), ids_->size(), kNoProgress);
  ASSERT_TRUE(prefill.ok()) << prefill.status();
  EXPECT_GE(prefill->resumed_layers, 2);
}

// A change or cut of the file that a session reads is detected; the lost rows
// are computed, and the file is removed.
TEST_F(DiskPagesTest, ATextThatIsDamagedWhileItIsReadGoes) {
  const Session::Options options = WithPromptCache();
  const auto expected = InMemory(*model_, options);
  Read(*expected, *ids_);
  for (const int32_t id : {3, 4}) ASSERT_TRUE(Add(*expected, id).ok());
  for (const bool cut : {false, true}) {
    std::filesystem::remove_all(path());
    { Read(*MakeSession(*model_, options), *ids_); }
    const std::string file = TextFile();
    const Tiered made = At(*model_, options, Place::kInPlace);
    Session& session = *made.session;
    Read(session, *ids_);
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file));
    const int64_t at = bytes - 3 * session.kv().site().layout.PageBytes();
    if (cut) {
      std::filesystem::resize_file(file, static_cast<uint64_t>(at));
    } else {
      std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
      out.seekp(at);
      out << "damaged";
    }
    absl::Status status = Add(session, 3);
    EXPECT_EQ(CodeOf(status), cut ? "io_error" : "page_damaged") << status;
    EXPECT_FALSE(std::filesystem::exists(file));
    ASSERT_TRUE(session.CatchUp(Phase::kVerify).ok());
    ASSERT_TRUE(Add(session, 4).ok());
    EXPECT_TRUE(SameBits(NextLogits(session), NextLogits(*expected)));
    EXPECT_THAT(session.warnings(), Contains(HasSubstr("cannot be read")));
  }
}

TEST_F(DiskPagesTest, WithoutTextsItDoesNotFit) {
  const Session::Options options = WithPromptCache();
  for (const Place place : {Place::kInPlace, Place::kNoHost}) {
    Session::Options none = options;
    none.texts.reset();
    const auto model = OpenAt(*model_, none, place);
    const absl::Status status = Session::Create(*model, none).status();
    EXPECT_EQ(CodeOf(status), "does_not_fit");
    EXPECT_THAT(std::string(status.message()), HasSubstr("pages on disk"));
    // A folder whose limit is reached gives no room.
    Session::Options small = options;
    small.texts->most_bytes = 1;
    EXPECT_THAT(std::string(Session::Create(*model, small).status().message()),
                HasSubstr("bytes on disk"));
  }
  // A context that is not given is what memory holds.
  const auto model = OpenAt(*model_, options, Place::kInPlace);
  Session::Options any = options;
  any.context = 0;
  const auto session = MakeSession(*model, any);
  EXPECT_EQ(session->kv().plan().shape.disk_pages, 0);
  EXPECT_LT(session->kv().plan().context, kContext);
}

}  // namespace
}  // namespace tiercel::disk_pages_test

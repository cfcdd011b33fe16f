#ifndef TIERCEL_TESTS_GOLDEN_H_
#define TIERCEL_TESTS_GOLDEN_H_

// The small checkpoints of tests/golden and the logits that they must give.

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/sim/sim_queue.h"
#include "runtime/generate/generate.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"

namespace tiercel {

// Returns true if a test may take minutes to try every fault, as tests/full.sh
// asks.
inline bool TriesAllFaults() { return getenv("TIERCEL_ALL_FAULTS") != nullptr; }

inline std::string CheckpointPath(const std::string& name) {
  return "tests/golden/checkpoints/" + name;
}

inline std::vector<int32_t> ReadTokens(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istream_iterator<int32_t>(file),
          std::istream_iterator<int32_t>()};
}

// Reads the `count` floats at the end of a NumPy file.
inline std::vector<float> ReadNpy(const std::string& path, size_t count) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
  EXPECT_GT(bytes.size(), count * sizeof(float)) << path;
  std::vector<float> values(count);
  if (bytes.size() > count * sizeof(float)) {
    std::memcpy(values.data(),
                bytes.data() + bytes.size() - count * sizeof(float),
                count * sizeof(float));
  }
  return values;
}

// The device of a test's model if its options name none: the CPU, or, when
// tests of the runtime run once more (TIERCEL_TEST_DEVICE=sim), a simulated
// device. TIERCEL_SIM_DELAYS is the seed of that one's delays.
inline DeviceKind TestedDevice() {
  static const DeviceKind device = [] {
    const char* const name = std::getenv("TIERCEL_TEST_DEVICE");
    const char* const seed = std::getenv("TIERCEL_SIM_DELAYS");
    if (seed != nullptr) SetSimDelays(std::strtoull(seed, nullptr, 10));
    return name != nullptr && std::string_view(name) == "sim"
               ? DeviceKind::kSim
               : DeviceKind::kCpu;
  }();
  return device;
}

// Opens a model that gives the expected results: on the device of its options,
// by default the CPU.
inline std::unique_ptr<Model> OpenReference(const Model::Options& options) {
  absl::StatusOr<std::unique_ptr<Model>> model =
      Model::Open(options, [](uint64_t, uint64_t) { return true; });
  EXPECT_TRUE(model.ok()) << options.path << ": " << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}
inline std::unique_ptr<Model> OpenModel(Model::Options options) {
  if (options.machine.device == DeviceKind::kCpu) {
    options.machine.device = TestedDevice();
  }
  return OpenReference(options);
}

inline std::unique_ptr<Session> MakeSession(
    const Model& model, const Session::Options& options = {}) {
  absl::StatusOr<std::unique_ptr<Session>> session =
      Session::Create(model, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

// The session's logits of the next token; empty if it does not know them.
inline std::vector<float> NextLogits(const Session& session) {
  return {session.NextLogits().begin(), session.NextLogits().end()};
}

// The logits of the first `rows` rows of the last step, [rows, vocab].
inline void RowLogits(Session& session, int64_t rows, float* out) {
  const int64_t vocab = session.model().config.vocab;
  for (int64_t row = 0; row < rows; row += kMaxStepRows) {
    const int64_t some = std::min(kMaxStepRows, rows - row);
    const absl::StatusOr<const float*> logits =
        session.runner().RowLogits(row, some);
    ASSERT_TRUE(logits.ok()) << logits.status();
    std::copy_n(*logits, some * vocab, out + row * vocab);
  }
}

// Makes a policy for a session that keeps the view of `params`, if they have
// one. Errors: those of CheckPolicy, NewDraftSession and Policy::Create.
inline absl::StatusOr<std::unique_ptr<Policy>> NewPolicy(
    Session& session, const PolicyParams& params) {
  if (absl::Status s = CheckPolicy(session.model(), params); !s.ok()) return s;
  absl::StatusOr<std::unique_ptr<Session>> draft = NewDraftSession(params);
  if (!draft.ok()) return draft.status();
  return Policy::Create(session, params, *std::move(draft));
}

// Continues a session without drafts.
inline Report Generate(Session& session, const GenerateParams& params,
                       const Transcript::OnToken& on_token,
                       const PrefillReport& prefill = {}) {
  const absl::StatusOr<std::unique_ptr<Policy>> policy = NewPolicy(session, {});
  EXPECT_TRUE(policy.ok()) << policy.status();
  return Generate(session, **policy, prefill, params, on_token);
}

// The logits [ids, vocab] of every position, `rows_per_step` rows at a time.
inline std::vector<float> AllLogits(Session& session,
                                    const std::vector<int32_t>& ids,
                                    size_t rows_per_step) {
  const auto vocab = static_cast<size_t>(session.model().config.vocab);
  std::vector<float> all(ids.size() * vocab,
                         std::numeric_limits<float>::quiet_NaN());
  const absl::Status status =
      Score(session, ids.data(), ids.size(), rows_per_step,
            [&](size_t index, const float* logits) {
              std::copy(logits, logits + vocab, all.data() + index * vocab);
              return true;
            });
  EXPECT_TRUE(status.ok()) << status;
  return all;
}

}  // namespace tiercel

#endif  // TIERCEL_TESTS_GOLDEN_H_

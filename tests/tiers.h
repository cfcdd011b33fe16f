#ifndef TIERCEL_TESTS_TIERS_H_
#define TIERCEL_TESTS_TIERS_H_

// Sessions on devices too small for their KV.

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/plan/session_plan.h"
#include "tests/golden.h"

namespace tiercel {

inline constexpr double kFast = 1e12;  // bytes/s: no test waits for a link

// A link so slow that the host takes a share of sweeps, and still no test
// waits.
inline constexpr LinkRate kSharedLink = {.bytes_per_s = 1e9, .latency_s = 0};

inline std::vector<int32_t> RandomIds(size_t count, int64_t vocab) {
  std::mt19937 random(5);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random() % static_cast<uint64_t>(vocab));
  }
  return ids;
}

// A folder of this process, removed at its end.
inline const std::string& ScratchFolder() {
  static const struct Folder {
    Folder() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path = testing::TempDir() + "tiers_XXXXXX";
  } folder;
  return folder.path;
}

// Makes a checkpoint of six layers, where layer i is a copy of layer i % 2: the
// golden checkpoints have only two, which would both fit into layer buffers.
inline std::string Deepened(const std::string& name) {
  const std::string from = CheckpointPath(name);
  const std::string to = ScratchFolder() + "/" + name;
  std::filesystem::create_directories(to);
  nlohmann::json config =
      nlohmann::json::parse(std::ifstream(from + "/config.json"));
  config["num_hidden_layers"] = 6;
  std::ofstream(to + "/config.json") << config;

  std::ifstream file(from + "/model.safetensors", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const std::string data = bytes.substr(8 + header_bytes);
  nlohmann::json header;
  std::string all;
  const auto old = nlohmann::json::parse(bytes.substr(8, header_bytes));
  for (const auto& [tensor, entry] : old.items()) {
    if (tensor == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0];
    const size_t end = entry["data_offsets"][1];
    const std::string prefix = "model.layers.";
    const bool of_layer = tensor.rfind(prefix, 0) == 0;
    for (int copy = 0; copy < (of_layer ? 3 : 1); ++copy) {
      std::string target = tensor;
      if (of_layer) {
        target[prefix.size()] =
            static_cast<char>(target[prefix.size()] + 2 * copy);
      }
      header[target] = entry;
      header[target]["data_offsets"] = {all.size(), all.size() + end - begin};
      all += data.substr(begin, end - begin);
    }
  }
  const std::string text = header.dump();
  header_bytes = text.size();
  std::ofstream out(to + "/model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&header_bytes), 8) << text << all;
  return to;
}

// Opens the model on the tested device, from one that gives the expected
// results.
inline std::unique_ptr<Model> Tested(const Model& reference) {
  return OpenModel(reference.options);
}

enum class Budget { kLeast, kMiddle, kAll };

// The bytes of a device for one session.
inline int64_t BytesFor(const Model& model, const Session::Options& options,
                        Budget budget) {
  if (TestedDevice() != DeviceKind::kCpu &&
      model.machine->device().kind() == DeviceKind::kCpu) {
    return BytesFor(*Tested(model), options, budget);
  }
  const absl::StatusOr<WeightSizes> weights =
      MeasureWeights(*model.checkpoint, model.config);
  EXPECT_TRUE(weights.ok());
  SessionSite site = SiteOf(model, *weights, options, model.machine->threads());
  site.promised = 0;  // this model has sessions
  site.there = {};
  const TierNeeds needs = site.Needs(options.context);
  const int64_t least = PlanTiers(needs, 0).DeviceBytes();
  const TierPlan all = PlanTiers(needs, int64_t{1} << 40);
  switch (budget) {
    case Budget::kLeast:
      return least;
    case Budget::kMiddle:
      return (least + all.DeviceBytes()) / 2 / 64 * 64;
    case Budget::kAll:
      return std::max(least, all.DeviceBytes());
  }
  return 0;
}

struct Tiered {
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;
};

// Makes a session on a device of `budget` and `more_bytes`, whose host attends
// at `host` bytes a second. `before` may take memory first.
inline Tiered MakeShared(
    const Model& like, const Session::Options& options, Budget budget,
    double host, int threads = 2, int64_t more_bytes = 0,
    absl::FunctionRef<void(DeviceMemory&)> before = [](DeviceMemory&) {}) {
  Model::Options with = like.options;
  with.machine.threads = threads;
  const int64_t share = HostAttention::DeviceBytes(like.config.heads);
  with.machine.simulation = {
      {.bytes = BytesFor(like, options, budget) + share + more_bytes,
       .link = kSharedLink,
       .host_bytes_per_s = host}};
  Tiered made;
  made.model = OpenModel(with);
  before(made.model->machine->memory());
  made.session = MakeSession(*made.model, options);
  return made;
}

inline Tiered MakeTiered(const Model& like, const Session::Options& options,
                         Budget budget, double link = kFast, int threads = 2,
                         Clock& clock = SteadyClock()) {
  Model::Options with = like.options;
  with.machine.threads = threads;
  with.machine.clock = &clock;
  with.machine.simulation = {
      {.bytes = BytesFor(like, options, budget), .link = {link, 0}}};
  Tiered made;
  made.model = OpenModel(with);
  made.session = MakeSession(*made.model, options);
  return made;
}

// Opens the model on a device of the least bytes for one session, with a host
// tier that has room for its KV and no more.
inline std::unique_ptr<Model> WithRoomForOne(const Model& like,
                                             const Session::Options& options) {
  Model::Options with = like.options;
  with.machine.simulation = {
      {.bytes = BytesFor(like, options, Budget::kLeast), .link = {kFast}}};
  with.machine.host_memory_bytes =
      MakeTiered(like, options, Budget::kLeast).session->kv().plan().host_kv;
  return OpenModel(with);
}

}  // namespace tiercel

#endif  // TIERCEL_TESTS_TIERS_H_

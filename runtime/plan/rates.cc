#include "runtime/plan/rates.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "kernels/system/clock.h"
#include "kernels/system/thread.h"
#include "kernels/token/distribution.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/decoder/decoder.h"
#include "offload/kv/in_place_kv.h"
#include "runtime/pass/fill.h"
#include "runtime/pass/pass.h"

namespace tiercel {
namespace {

constexpr auto kNever = [] { return false; };

Clock::Time Now() { return SteadyClock().Now(); }
double SecondsSince(Clock::Time begin) { return SecondsBetween(begin, Now()); }

double MedianOf(std::vector<double> samples) {
  const auto middle =
      samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Copies memory, more than caches hold, until it is destroyed.
class Copying {
 public:
  Copying()
      : from_(kBytes, std::byte{1}),
        to_(kPiece),
        thread_(StartThread([this] { Run(); })) {}
  ~Copying() {
    stop_ = true;
    thread_.join();
  }
  size_t bytes() const { return done_; }
  // Waits until more than `bytes` are copied.
  void WaitBeyond(size_t bytes) const {
    for (size_t done = done_; done <= bytes; done = done_) done_.wait(done);
  }

 private:
  static constexpr size_t kBytes = size_t{64} << 20;
  static constexpr size_t kPiece = size_t{1} << 20;

  void Run() {
    while (!stop_.load(std::memory_order_relaxed)) {
      std::memcpy(to_.data(), from_.data() + done_ % kBytes, kPiece);
      done_ += kPiece;
      done_.notify_one();
    }
  }

  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  std::atomic<size_t> done_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class Probe {
 public:
  Probe(const RatesProbe& p, Stream& stream, RatesProgress progress)
      : config_(p.config),
        layers_(p.layers),
        weight_bytes_per_token_(p.weight_bytes_per_token),
        stream_(stream),
        progress_(progress),
        decoder_(p.config, p.weights, p.compute, SystemMemory()),
        kv_(std::make_shared<PagePool>(p.layout, p.layers,
                                       kMostDepth / kPageTokens),
            /*begin=*/0),
        logits_(static_cast<size_t>(p.config.vocab)) {}

  absl::StatusOr<Measurement> Run();

 private:
  // The depth that is measured at, less if a layer's KV is large: it only has
  // to exceed what caches hold.
  static constexpr int64_t kMostDepth = 8192;
  static constexpr int64_t kMostKvBytes = int64_t{128} << 20;
  // Other work slows the machine for a second at times: each kind of pass is
  // spread over several rounds, and the median counts.
  static constexpr int kRounds = 3;
  static constexpr int kKinds = 5;
  static constexpr double kSecondsEach = 0.2 / kRounds;

  // Seconds of passes of one kind, of all rounds.
  using Samples = std::vector<double>;
  // Seconds for the parts of a token.
  struct Tokens {
    Samples layers;  // all of them
    Samples logits;
  };
  struct Seen {
    Tokens first;
    Tokens deep;
    Tokens beside_copies;  // deep as well
    Samples many_rows;
    Samples deep_rows;
    Samples copied;  // bytes a second beside tokens, of each round
  };

  absl::Status Size();
  absl::Status Round(Seen* seen);
  Rates RatesOf(const Seen& seen) const;
  int PromptLayers() const { return std::min(layers_, 2); }
  // Reports progress, and returns false if cancelled; `done_` grows by one
  // about every kSecondsEach.
  bool Progress() const { return progress_(done_, 1 + kRounds * kKinds); }
  // Makes hidden states that differ, so that rows choose experts as those of a
  // text do.
  void FillHidden(int64_t rows);
  // Seconds of one pass of `rows` rows through the first `layers` layers.
  absl::StatusOr<double> Pass(int64_t rows, int layers);
  absl::StatusOr<double> Logits();
  // Runs passes for kSecondsEach, one at least, after a warm-up pass. Tokens
  // follow each other as in a generation: the layers' weights drive those of
  // the logits out of the caches, and the other way round.
  absl::Status RunTokens(Tokens* tokens);
  // Times a prompt's passes; after the first round every one counts, since it
  // is long enough to be warm.
  absl::Status RunPrompt(int64_t rows, Samples* passes);

  const ModelConfig& config_;
  const int layers_;
  const int64_t weight_bytes_per_token_;
  Stream& stream_;
  const RatesProgress progress_;
  uint64_t done_ = 0;
  Decoder decoder_;
  InPlaceKv kv_;
  int64_t rows_ = 0;   // in the long prompt
  int64_t few_ = 0;    // in the prompt at depth
  int64_t depth_ = 0;  // positions before that
  std::vector<float> hidden_;
  std::vector<float> logits_;
};

void Probe::FillHidden(int64_t rows) {
  hidden_.resize(static_cast<size_t>(rows * config_.hidden));
  std::minstd_rand random(1);
  constexpr auto kMost = static_cast<float>(std::minstd_rand::max());
  for (float& x : hidden_) x = static_cast<float>(random()) / kMost - 0.5f;
}

absl::StatusOr<double> Probe::Pass(int64_t rows, int layers) {
  RETURN_IF_ERROR(kv_.BeginStep(rows, Phase::kPrefill, View::Full(), kNever));
  const absl::Cleanup forget = [this] { kv_.Abandon(); };
  FillHidden(rows);
  RETURN_IF_ERROR(decoder_.BeginStep(stream_, rows, kv_.end(),
                                     /*of_prompt=*/rows > 1));
  const Clock::Time begin = Now();
  WholeStates hidden(InPlace(hidden_.data()), config_.hidden);
  PassPoint point;
  RETURN_IF_ERROR(RunPass(
      {.kv = kv_,
       .rows = rows,
       .before = kv_.length(),
       .layers = layers,
       .weight_bytes_per_token = weight_bytes_per_token_,
       .hidden = hidden},
      decoder_, stream_, [this](uint64_t, uint64_t) { return Progress(); },
      kNever, &point));
  return SecondsSince(begin);
}

absl::StatusOr<double> Probe::Logits() {
  const Clock::Time begin = Now();
  RETURN_IF_ERROR(decoder_.Logits(stream_, InPlace(hidden_.data()), 1,
                                  InPlace(logits_.data())));
  ASSIGN_OR_RETURN(const auto distributions,
                   MakeDistributions(stream_, {.logits = logits_.data(),
                                               .rows = 1,
                                               .vocab = config_.vocab,
                                               .tokens = nullptr,
                                               .before = 0,
                                               .distribution = {}}));
  (void)Draw(distributions.front(), /*seed=*/0, /*position=*/0);
  return SecondsSince(begin);
}

absl::Status Probe::RunTokens(Tokens* tokens) {
  const Clock::Time begin = Now();
  for (int i = 0; i < 2 || SecondsSince(begin) < kSecondsEach; ++i) {
    ASSIGN_OR_RETURN(const double layers, Pass(1, layers_));
    ASSIGN_OR_RETURN(const double logits, Logits());
    if (i == 0) continue;
    tokens->layers.push_back(layers);
    tokens->logits.push_back(logits);
  }
  ++done_;
  return absl::OkStatus();
}

absl::Status Probe::RunPrompt(int64_t rows, Samples* passes) {
  const Clock::Time begin = Now();
  bool warm = !passes->empty();
  do {
    ASSIGN_OR_RETURN(const double pass, Pass(rows, PromptLayers()));
    if (warm) passes->push_back(pass);
    warm = true;
  } while (passes->empty() || SecondsSince(begin) < kSecondsEach);
  ++done_;
  return absl::OkStatus();
}

// Chooses the prompts' rows and the depth for this machine and model.
absl::Status Probe::Size() {
  Tokens tokens;
  RETURN_IF_ERROR(RunTokens(&tokens));
  const int64_t rows_at_once =
      PromptRowsAtOnce(config_, weight_bytes_per_token_, stream_.device(),
                       stream_.pool().num_threads(), /*before=*/0);
  // One prompt has many rows and nothing before them, the other fewer rows at
  // depth. A row among many takes no longer than a row alone, which bounds the
  // time on slow machines.
  rows_ = std::clamp(static_cast<int64_t>(layers_ / MedianOf(tokens.layers)),
                     int64_t{16}, 4 * rows_at_once);
  few_ = std::min(rows_, rows_at_once);
  const int64_t position_bytes =
      kv_.layout().PageBytes() / kPageTokens * layers_;
  depth_ = std::clamp(kMostKvBytes / position_bytes, int64_t{512},
                      kMostDepth - rows_);
  return absl::OkStatus();
}

absl::Status Probe::Round(Seen* seen) {
  kv_.Truncate(0);
  RETURN_IF_ERROR(RunTokens(&seen->first));
  RETURN_IF_ERROR(RunPrompt(rows_, &seen->many_rows));
  RETURN_IF_ERROR(FillKv(
      kv_, depth_, /*seed=*/0, stream_,
      [this](uint64_t, uint64_t) { return Progress(); }, kNever));
  RETURN_IF_ERROR(RunPrompt(few_, &seen->deep_rows));
  RETURN_IF_ERROR(RunTokens(&seen->deep));

  const Copying copying;
  copying.WaitBeyond(0);
  const size_t before = copying.bytes();
  const Clock::Time begin = Now();
  RETURN_IF_ERROR(RunTokens(&seen->beside_copies));
  copying.WaitBeyond(before);
  seen->copied.push_back(static_cast<double>(copying.bytes() - before) /
                         SecondsSince(begin));
  return absl::OkStatus();
}

absl::StatusOr<Measurement> Probe::Run() {
  const Clock::Time begin = Now();
  RETURN_IF_ERROR(Size());
  Seen seen;
  for (int round = 0; round < kRounds; ++round) {
    RETURN_IF_ERROR(Round(&seen));
  }
  // Samples beside copies do not count: their spread is our own doing.
  Measurement measured = {.rates = RatesOf(seen)};
  for (const Samples* samples : {&seen.first.layers, &seen.deep.layers,
                                 &seen.many_rows, &seen.deep_rows}) {
    measured.spread = std::max(measured.spread, SpreadOf(*samples));
  }
  measured.seconds = SecondsSince(begin);
  return measured;
}

Rates Probe::RatesOf(const Seen& seen) const {
  Rates rates;
  const double step = MedianOf(seen.first.layers);
  const double deep_step = MedianOf(seen.deep.layers);
  rates.step_s = step / layers_;
  rates.logits_s = MedianOf(seen.first.logits);
  rates.step_position_s =
      std::max(0.0, deep_step - step) / (static_cast<double>(depth_) * layers_);

  // row * rows + position * (positions attended to) = seconds, twice.
  const auto m = static_cast<double>(rows_);
  const auto f = static_cast<double>(few_);
  const double m_positions = m * (m + 1) / 2;
  const double f_positions = f * static_cast<double>(depth_) + f * (f + 1) / 2;
  const double t_many = MedianOf(seen.many_rows) / PromptLayers();
  const double t_deep = MedianOf(seen.deep_rows) / PromptLayers();
  // Noise may attribute all of the time to positions; the limit leaves some to
  // rows.
  rates.prompt_position_s = std::clamp(
      (t_deep - t_many * f / m) / (f_positions - m_positions * f / m), 0.0,
      0.9 * t_many / m_positions);
  rates.prompt_row_s = (t_many - rates.prompt_position_s * m_positions) / m;

  rates.copy_bytes_per_s = MedianOf(seen.copied);
  rates.copy_slowdown =
      std::max(1.0, MedianOf(seen.beside_copies.layers) / deep_step);
  return rates;
}

}  // namespace

int LayersToMeasure(const ModelConfig& config, const WeightSizes& sizes) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  const int64_t layer_bytes =
      std::max<int64_t>(1, sizes.bytes_per_token / config.layers);
  return static_cast<int>(
      std::clamp<int64_t>(kBytes / layer_bytes, 1, config.layers));
}

absl::StatusOr<Measurement> MeasureRates(const RatesProbe& probe,
                                         Stream& stream,
                                         RatesProgress progress) {
  // The model may have left little memory; starting threads may fail, too.
  try {
    return Probe(probe, stream, progress).Run();
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  return MemoryError("out_of_memory",
                     "rates: the system gives no memory to measure in");
}

absl::StatusOr<std::optional<Measurement>> SteadiestOf(
    const MeasuringAgain& again,
    absl::FunctionRef<absl::StatusOr<Measurement>(int attempt)> measure) {
  std::optional<Measurement> best;
  double left = std::max(0.0, again.seconds);
  double next = again.first_s;
  for (int attempt = 0; attempt < again.attempts && next <= left; ++attempt) {
    ASSIGN_OR_RETURN(const Measurement measured, measure(attempt));
    if (next > 0) left -= measured.seconds;
    next = measured.seconds;
    if (!best.has_value() || measured.spread < best->spread) best = measured;
    best->attempts = attempt + 1;
    best->seconds = measured.seconds;
    if (best->steady()) break;
  }
  return best;
}

}  // namespace tiercel

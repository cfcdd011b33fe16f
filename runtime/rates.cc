#include "runtime/rates.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"
#include "kernels/token/law.h"
#include "models/decoder/decoder.h"
#include "offload/page/host_kv.h"
#include "runtime/session_plan.h"

namespace tiercel {
namespace {

constexpr auto kNever = [] { return false; };

Clock::Time Now() { return SteadyClock().Now(); }
double SecondsSince(Clock::Time begin) { return SecondsBetween(begin, Now()); }

// Copies, from more than caches hold, until it is destroyed.
class Copying {
 public:
  Copying()
      : from_(kBytes, std::byte{1}), to_(kPiece), thread_([this] { Run(); }) {}
  ~Copying() {
    stop_ = true;
    thread_.join();
  }
  size_t bytes() const { return done_; }
  // Waits until more than so many are copied.
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
  Probe(const RatesProbe& p, std::unique_ptr<Stream> stream)
      : config_(p.config),
        layers_(p.layers),
        rows_at_once_(p.rows_at_once),
        stream_(std::move(stream)),
        decoder_(p.config, p.weights, p.compute, SystemMemory()),
        kv_(std::make_shared<PagePool>(p.layout, p.layers,
                                       kMostDepth / kPageTokens),
            /*begin=*/0),
        logits_(static_cast<size_t>(p.config.vocab)) {}

  absl::StatusOr<Rates> Run();

 private:
  // The deepest KV, less where a layer's is large: it only has to be more than
  // caches hold.
  static constexpr int64_t kMostDepth = 8192;
  static constexpr int64_t kMostKvBytes = int64_t{128} << 20;
  // Other work on the machine slows it for a second at times: everything is
  // measured in several rounds, and the middle one counts.
  static constexpr int kRounds = 3;
  static constexpr double kSecondsEach = 0.2 / kRounds;

  // Seconds of what a token takes.
  struct Token {
    double layers = 0;
    double logits = 0;
  };
  // Seconds of passes, one of each round.
  struct Seen {
    std::vector<double> step;  // through all layers
    std::vector<double> logits;
    std::vector<double> many_rows;
    std::vector<double> deep_rows;
    std::vector<double> deep_step;
    std::vector<double> slowdown;  // of that, beside copies
    std::vector<double> copied;    // bytes a second, meanwhile
  };

  absl::Status Size();
  absl::Status Round(Seen* seen);
  int PromptLayers() const { return std::min(layers_, 2); }
  absl::Status PretendDepth(int64_t depth);
  // Seconds of one pass of `rows` rows through the first `layers` layers.
  absl::StatusOr<double> Pass(int64_t rows, int layers);
  absl::StatusOr<double> Logits();
  // Medians. Tokens follow each other as in a run: the layers' weights drive
  // those of the logits out of the caches, and the other way round.
  absl::StatusOr<Token> Tokens();
  absl::StatusOr<double> Prompt(int64_t rows);

  const ModelConfig& config_;
  const int layers_;
  const int64_t rows_at_once_;
  const std::unique_ptr<Stream> stream_;
  Decoder decoder_;
  HostKv kv_;
  int64_t rows_ = 0;   // of a prompt
  int64_t few_ = 0;    // of it, far down
  int64_t depth_ = 0;  // positions there
  std::vector<float> hidden_;
  std::vector<float> logits_;
};

double MedianOf(std::vector<double> samples) {
  const auto middle =
      samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Positions that exist without having been computed: attention takes the same
// time over any finite numbers.
absl::Status Probe::PretendDepth(int64_t depth) {
  constexpr int kSomeByte = 0x2c;  // small in every type
  if (absl::Status s =
          kv_.BeginStep(depth, Station::kPrefill, View::Full(), kNever);
      !s.ok()) {
    return s;
  }
  for (int layer = 0; layer < layers_; ++layer) {
    const absl::StatusOr<KvPages> pages = kv_.BeginLayer(layer, kNever);
    if (!pages.ok()) return pages.status();
    for (int64_t i = 0; i < pages->num_pages; ++i) {
      std::memset(pages->pages[i], kSomeByte,
                  static_cast<size_t>(pages->layout.PageBytes()));
    }
    kv_.EndLayer(layer);
  }
  return kv_.Commit(depth, kNever);
}

absl::StatusOr<double> Probe::Pass(int64_t rows, int layers) {
  if (absl::Status s =
          kv_.BeginStep(rows, Station::kPrefill, View::Full(), kNever);
      !s.ok()) {
    return s;
  }
  const absl::Cleanup forget = [this] { kv_.Abandon(); };
  hidden_.assign(static_cast<size_t>(rows * config_.hidden), 0.5f);
  if (absl::Status s = decoder_.BeginStep(*stream_, rows, kv_.end()); !s.ok()) {
    return s;
  }
  const Clock::Time begin = Now();
  for (int layer = 0; layer < layers; ++layer) {
    const absl::StatusOr<KvPages> pages = kv_.BeginLayer(layer, kNever);
    if (!pages.ok()) return pages.status();
    for (int64_t row = 0; row < rows; row += rows_at_once_) {
      if (absl::Status s = decoder_.Layer(
              *stream_, layer, std::min(rows_at_once_, rows - row), row, *pages,
              hidden_.data() + row * config_.hidden);
          !s.ok()) {
        return s;
      }
    }
    kv_.EndLayer(layer);
  }
  return SecondsSince(begin);
}

absl::StatusOr<double> Probe::Logits() {
  const Clock::Time begin = Now();
  if (absl::Status s =
          decoder_.Logits(*stream_, hidden_.data(), 1, logits_.data());
      !s.ok()) {
    return s;
  }
  const auto laws = MakeLaws(*stream_, {.logits = logits_.data(),
                                        .rows = 1,
                                        .vocab = config_.vocab,
                                        .tokens = nullptr,
                                        .before = 0,
                                        .law = {}});
  if (!laws.ok()) return laws.status();
  (void)Draw(laws->front(), /*seed=*/0, /*position=*/0);
  return SecondsSince(begin);
}

absl::StatusOr<Probe::Token> Probe::Tokens() {
  const Clock::Time begin = Now();
  std::vector<double> layers;
  std::vector<double> logits;
  do {
    const absl::StatusOr<double> pass = Pass(1, layers_);
    if (!pass.ok()) return pass.status();
    const absl::StatusOr<double> rest = Logits();
    if (!rest.ok()) return rest.status();
    layers.push_back(*pass);
    logits.push_back(*rest);
  } while (layers.size() < 2 || SecondsSince(begin) < kSecondsEach);
  // The first of them warmed up.
  return Token{.layers = MedianOf({layers.begin() + 1, layers.end()}),
               .logits = MedianOf({logits.begin() + 1, logits.end()})};
}

absl::StatusOr<double> Probe::Prompt(int64_t rows) {
  const Clock::Time begin = Now();
  std::vector<double> passes;
  do {
    const absl::StatusOr<double> pass = Pass(rows, PromptLayers());
    if (!pass.ok()) return pass.status();
    passes.push_back(*pass);
  } while (passes.size() < 2 || SecondsSince(begin) < kSecondsEach);
  return MedianOf({passes.begin() + 1, passes.end()});
}

// How many rows and how deep, for this machine and model.
absl::Status Probe::Size() {
  const absl::StatusOr<Token> token = Tokens();
  if (!token.ok()) return token.status();
  // A prompt: many rows over themselves, then fewer far down. A row of many
  // takes no longer than a row alone, which bounds what slow machines try.
  rows_ = std::clamp(static_cast<int64_t>(layers_ / token->layers), int64_t{16},
                     4 * rows_at_once_);
  few_ = std::min(rows_, rows_at_once_);
  const int64_t position_bytes =
      kv_.layout().PageBytes() / kPageTokens * layers_;
  depth_ = std::clamp(kMostKvBytes / position_bytes, int64_t{512},
                      kMostDepth - rows_);
  return absl::OkStatus();
}

absl::Status Probe::Round(Seen* seen) {
  kv_.Truncate(0);
  const absl::StatusOr<Token> token = Tokens();
  if (!token.ok()) return token.status();
  const absl::StatusOr<double> many = Prompt(rows_);
  if (!many.ok()) return many.status();
  if (absl::Status s = PretendDepth(depth_); !s.ok()) return s;
  const absl::StatusOr<double> few = Prompt(few_);
  if (!few.ok()) return few.status();
  const absl::StatusOr<Token> deep = Tokens();
  if (!deep.ok()) return deep.status();

  const Copying copying;
  copying.WaitBeyond(0);
  const size_t before = copying.bytes();
  const Clock::Time begin = Now();
  const absl::StatusOr<Token> beside = Tokens();
  if (!beside.ok()) return beside.status();
  copying.WaitBeyond(before);
  const double seconds = SecondsSince(begin);

  seen->step.push_back(token->layers);
  seen->logits.push_back(token->logits);
  seen->many_rows.push_back(*many);
  seen->deep_rows.push_back(*few);
  seen->deep_step.push_back(deep->layers);
  seen->slowdown.push_back(beside->layers / deep->layers);
  seen->copied.push_back(static_cast<double>(copying.bytes() - before) /
                         seconds);
  return absl::OkStatus();
}

absl::StatusOr<Rates> Probe::Run() {
  if (absl::Status s = Size(); !s.ok()) return s;
  Seen seen;
  for (int round = 0; round < kRounds; ++round) {
    if (absl::Status s = Round(&seen); !s.ok()) return s;
  }
  Rates rates;
  const double step = MedianOf(seen.step);
  rates.step_s = step / layers_;
  rates.logits_s = MedianOf(seen.logits);
  rates.step_position_s = std::max(0.0, MedianOf(seen.deep_step) - step) /
                          (static_cast<double>(depth_) * layers_);

  // row * rows + position * (positions attended to) = seconds, twice.
  const auto m = static_cast<double>(rows_);
  const auto f = static_cast<double>(few_);
  const double m_positions = m * (m + 1) / 2;
  const double f_positions = f * static_cast<double>(depth_) + f * (f + 1) / 2;
  const double t_many = MedianOf(seen.many_rows) / PromptLayers();
  const double t_deep = MedianOf(seen.deep_rows) / PromptLayers();
  // Noise may say that positions take all of the time: rows take some too.
  rates.prompt_position_s = std::clamp(
      (t_deep - t_many * f / m) / (f_positions - m_positions * f / m), 0.0,
      0.9 * t_many / m_positions);
  rates.prompt_row_s = (t_many - rates.prompt_position_s * m_positions) / m;

  rates.copy_bytes_per_s = MedianOf(seen.copied);
  rates.copy_slowdown = std::max(1.0, MedianOf(seen.slowdown));
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

absl::StatusOr<Rates> MeasureRates(const RatesProbe& probe,
                                   std::unique_ptr<Stream> stream) {
  // Beside the model there may be little left; threads take some too.
  try {
    return Probe(probe, std::move(stream)).Run();
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  return MemoryError("out_of_memory",
                     "rates: the system gives no memory to measure in");
}

}  // namespace tiercel

#include "runtime/plan/pipeline.h"

#include <algorithm>
#include <array>

namespace tiercel {
namespace {

// A link that makes its copies one after the other, none before its request.
class LinkClock {
 public:
  double Copy(double asked, double seconds) {
    free_ = std::max(free_, asked) + seconds;
    return free_;
  }

 private:
  double free_ = 0;
};

}  // namespace

double PromptSeconds(int layers, const LayerTimes& layer) {
  LinkClock link;
  double now = 0;
  // The times at which the two buffers, which layers use in turn, are filled.
  // No wait for a buffer's pages to leave is needed: the link works in order.
  std::array<double, 2> filled = {};
  double sent = 0;
  for (int l = 0; l < std::min(layers, 2); ++l) {
    filled[static_cast<size_t>(l)] = link.Copy(now, layer.up_s);
  }
  for (int l = 0; l < layers; ++l) {
    const auto buffer = static_cast<size_t>(l % 2);
    now = std::max(now, filled[buffer]);
    link.Copy(now, layer.states_s);
    now += std::max(layer.compute_s, layer.states_s);
    sent = link.Copy(now, layer.down_s);
    if (l + 2 < layers) filled[buffer] = link.Copy(now, layer.up_s);
  }
  return std::max(now, sent);
}

double StepSeconds(int layers, const LayerTimes& layer, double between_s) {
  constexpr int kSteps = 4;  // by then each step takes as long as the last
  LinkClock link;
  double now = 0;
  double before = 0;
  std::array<double, 2> filled = {};
  for (int step = 0, k = 0; step < kSteps; ++step) {
    before = now;
    for (int l = 0; l < layers; ++l, ++k) {
      const auto buffer = static_cast<size_t>(k % 2);
      now = std::max(now, filled[buffer]) + layer.compute_s;
      filled[buffer] = link.Copy(now, layer.up_s);
    }
    now += between_s;
  }
  return now - before;
}

}  // namespace tiercel

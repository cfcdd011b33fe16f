#include "offload/plan/pipeline.h"

#include <algorithm>
#include <array>

namespace tiercel {
namespace {

// Copies follow each other, none before it is asked for.
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
  // They take turns. The link works in order: what is filled was sent before.
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
  constexpr int kSteps = 4;  // by then every step is like the one before
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

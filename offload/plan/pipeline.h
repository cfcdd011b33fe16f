#ifndef TIERCEL_OFFLOAD_PLAN_PIPELINE_H_
#define TIERCEL_OFFLOAD_PLAN_PIPELINE_H_

namespace tiercel {

// What one layer of a step takes, all layers alike, where pages cross the link.
struct LayerTimes {
  double compute_s = 0;
  double up_s = 0;    // the link with the pages it reads
  double down_s = 0;  // the link with the pages it has filled; prompts only
  // The link, before all else, with hidden states that come and go while it
  // computes; prompts only.
  double states_s = 0;
};

// What a step takes through two layer buffers, as kv/tiered_kv runs it: one
// link works in order; a layer begins when its pages are there and what was in
// its buffer has left; the layer after next is asked for when a layer ends.
double PromptSeconds(int layers, const LayerTimes& layer);

// Seconds of each of many decode steps that follow each other, `between_s`
// apart: the first two layers of each were asked for during the one before.
double StepSeconds(int layers, const LayerTimes& layer, double between_s);

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PLAN_PIPELINE_H_

#ifndef TIERCEL_RUNTIME_PLAN_PIPELINE_H_
#define TIERCEL_RUNTIME_PLAN_PIPELINE_H_

namespace tiercel {

// Seconds that one layer of a step takes. All layers are alike.
struct LayerTimes {
  double compute_s = 0;
  double up_s = 0;    // on the link, for the pages that it reads
  double down_s = 0;  // on the link, for the pages it has filled; prompts only
  // On the link, for hidden states that come and go while the layer computes
  // and that go before all pages; prompts only.
  double states_s = 0;
};

// The seconds of a prompt's step through two layer buffers, as kv/tiered_kv
// runs it: one link works in order; a layer begins when its pages have arrived
// and the earlier pages of its buffer have left; at the end of a layer the
// layer after the next is fetched.
double PromptSeconds(int layers, const LayerTimes& layer);

// The seconds of one of many decode steps that follow each other, `between_s`
// apart: each fetches the first two layers of the next.
double StepSeconds(int layers, const LayerTimes& layer, double between_s);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_PIPELINE_H_

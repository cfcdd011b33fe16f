#ifndef TIERCEL_RUNTIME_SEQUENCE_PREDICTED_H_
#define TIERCEL_RUNTIME_SEQUENCE_PREDICTED_H_

#include <vector>

#include "runtime/predict/prediction.h"
#include "runtime/predict/rates.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// The times that `rates` predict for `work` in `session`.
inline Prediction PredictedBy(const Session& session, const Rates& rates,
                              const Work& work) {
  std::vector<SessionSite> sites;
  std::vector<TierPlan> plans;
  for (const auto& rank : session.kv().ranks()) {
    sites.push_back(rank->site);
    plans.push_back(rank->plan);
  }
  return PredictRanks(sites, plans, session.model().machine->link(), rates,
                      work);
}

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_PREDICTED_H_

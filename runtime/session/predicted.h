#ifndef TIERCEL_RUNTIME_SESSION_PREDICTED_H_
#define TIERCEL_RUNTIME_SESSION_PREDICTED_H_

#include "runtime/plan/prediction.h"
#include "runtime/plan/rates.h"
#include "runtime/session/session.h"

namespace tiercel {

// The times that `rates` predict for `work` in `session`.
inline Prediction PredictedBy(const Session& session, const Rates& rates,
                              const Work& work) {
  return PredictRanks(session.kv().sites(), session.kv().plans(),
                      session.model().machine->device().link(), rates, work);
}

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_PREDICTED_H_

#ifndef TIERCEL_RUNTIME_SEQUENCE_PREDICTED_H_
#define TIERCEL_RUNTIME_SEQUENCE_PREDICTED_H_

#include "runtime/predict/prediction.h"
#include "runtime/predict/rates.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// What `rates` say that `session` takes for `work`.
inline Prediction PredictedBy(const Session& session, const Rates& rates,
                              const Work& work) {
  return Predict(session.site(), session.plan(),
                 session.model().machine->link(), rates, work);
}

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_PREDICTED_H_

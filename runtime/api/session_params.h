#ifndef TIERCEL_RUNTIME_API_SESSION_PARAMS_H_
#define TIERCEL_RUNTIME_API_SESSION_PARAMS_H_

// Reads the structs of tiercel.h that say how a session is made and how it
// generates.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "include/tiercel.h"
#include "models/tokenizer/tokenizer.h"
#include "runtime/generate/dry_breakers.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/session/session.h"

namespace tiercel {

struct SessionRequest {
  Session::Options options;
  PolicyParams policy;
  std::shared_ptr<const Model> draft_model;  // the policy's; null: none
  std::optional<std::string> rates_folder;
};

// Reads the request of a session of `model`. Errors: null_argument,
// invalid_struct_size, invalid_kv_type, invalid_argument.
absl::StatusOr<SessionRequest> ReadSessionParams(
    const Model& model, const tiercel_session_params* params);

struct SamplingRequest {
  GenerateParams params;        // without the mask
  tiercel_mask mask = nullptr;  // the program's; null: none
  void* mask_user_data = nullptr;
};

// `tokenizer`, which may be null, is the model's; `breakers` know its tokens.
// Errors: null_argument, invalid_struct_size, invalid_stop, invalid_sampling
// for sequence breakers; Generate checks the numbers.
absl::StatusOr<SamplingRequest> ReadSampling(const tiercel_sampling* sampling,
                                             const Tokenizer* tokenizer,
                                             KnownBreakers* breakers);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_SESSION_PARAMS_H_

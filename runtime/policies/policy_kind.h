#ifndef TIERCEL_RUNTIME_POLICIES_POLICY_KIND_H_
#define TIERCEL_RUNTIME_POLICIES_POLICY_KIND_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drafts/draft_length.h"
#include "offload/kv/view.h"
#include "offload/retrieval/retrieval.h"
#include "runtime/plan/session_plan.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_parts.h"

namespace tiercel {

// The sizes and settings of a request. 0: the request leaves it to the policy.
struct PolicyRequest {
  int64_t budget = 0;
  int chunk = 0;
  int64_t sink = 0;
  int64_t window = 0;
  std::string settings = {};  // KEY=VALUE,KEY=VALUE
};

// A setting that one policy alone knows, for people.
struct PolicyKey {
  const char* key;
  const char* value;  // the default; "N": it depends on the model
  const char* help;
};

// A policy as users name it: each folder defines one, and the registry lists
// them. An object has no state; PolicyParams hold the settings.
class PolicyKind {
 public:
  virtual ~PolicyKind() = default;

  virtual std::string_view name() const = 0;
  // A line for people, about the part of the text that steps read.
  virtual std::string_view help() const = 0;
  // True if there is a plain form beside the verified one.
  virtual bool has_plain() const { return false; }
  // Returns true if blocks of its verified form may have branches.
  virtual bool has_branches() const { return false; }
  // Returns true if it may draft while a sweep checks a block.
  virtual bool drafts_ahead() const { return false; }
  // The names of the sizes of a PolicyRequest that its plain form heeds; the
  // verified form of all policies but full heeds all.
  virtual std::vector<std::string_view> plain_sizes() const { return {}; }
  // The keys of --set.
  virtual std::vector<PolicyKey> keys() const { return {}; }

  // Takes the sizes and settings of a request. Errors: invalid_argument.
  virtual absl::Status Read(const PolicyRequest& request,
                            PolicyParams* params) const;
  // Checks that sessions of `target` can use `params`. Errors:
  // invalid_argument.
  virtual absl::Status Check(const Model& /*target*/,
                             const PolicyParams& /*params*/) const {
    return absl::OkStatus();
  }
  // The given keys that have no effect in the form of `params`.
  virtual std::vector<std::string> UnusedKeys(
      const PolicyParams& /*params*/) const {
    return {};
  }
  // A warning about sessions of `target`; "": there is none.
  virtual std::string Warning(const Model& /*target*/,
                              const PolicyParams& /*params*/) const {
    return "";
  }

  // The needs of a session under `params`, whose form is not the baseline: the
  // retrieval view that drafts or steps read (absent: none), and the
  // distributions of a block.
  virtual std::optional<RetrievalSize> RetrievalView(
      const PolicyParams& params) const;
  virtual BlockDistributions Distributions(const PolicyParams& params) const;
  // Adds the needs that the policy alone has, in sessions of `target`.
  virtual void AddNeeds(const Model& /*target*/, const PolicyParams& /*params*/,
                        SessionOptions* /*options*/) const {}

  // The fast steps of the plain form.
  virtual FastSteps PlannedSteps(const PolicyParams& /*params*/) const {
    return {};
  }
  // Seconds of a draft's pass of one row on one rank, behind `length` tokens.
  virtual double DraftSeconds(const PolicyParams& params,
                              const SessionSite& site, const Rates& rates,
                              int64_t length) const;
  // True if the policy drafts over a view or steps over one, so that times with
  // and without it differ.
  virtual bool HasTimes() const { return true; }

  // True if the baseline forces tokens of the text, as the other forms do; if
  // not, it is the policy full.
  virtual bool HasBaseline() const { return false; }
  virtual absl::StatusOr<std::unique_ptr<Policy>> Make(
      PolicyParts parts) const = 0;
};

// Replaces the sizes of `view` that the request names. It has at least one
// sink, and the default sinks are no more than the budget.
void ReadView(const PolicyRequest& request, RetrievalSize* view);

// Replaces each value whose size is not 0. Errors: invalid_argument, for a size
// that is negative or beyond reason.
absl::Status ReadSizes(
    std::initializer_list<std::tuple<const char*, int64_t, int64_t*>> sizes);

// The most tokens in a block: `asked`, or `ours` if the request leaves it open.
int64_t MostTokens(const std::optional<DraftLength>& asked, int64_t ours);

// The usual number of tokens that a view drafts at a time.
int64_t DraftBlockTokens(const PolicyParams& params);

// Positions of the retrieval view that a draft behind `length` tokens reads.
int64_t DraftPositions(const PolicyParams& params, int64_t length);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_POLICY_KIND_H_

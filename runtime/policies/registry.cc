#include <algorithm>

#include "runtime/policies/full/full.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sadas/sadas.h"
#include "runtime/policies/sfi/sfi.h"
#include "runtime/policies/speed/speed.h"
#include "runtime/policies/triforce/triforce.h"

namespace tiercel {

std::span<const PolicyKind* const> Policies() {
  static const FullKind kFull;
  static const TriForceKind kTriForce;
  static const SfiKind kSfi;
  static const SadasKind kSadas;
  static const SpeedKind kSpeed;
  static const PolicyKind* const kAll[] = {&kFull, &kTriForce, &kSfi, &kSadas,
                                           &kSpeed};
  return kAll;
}

const PolicyKind* PolicyNamed(std::string_view name) {
  const auto all = Policies();
  const auto found = std::find_if(
      all.begin(), all.end(),
      [&](const PolicyKind* kind) { return kind->name() == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace tiercel

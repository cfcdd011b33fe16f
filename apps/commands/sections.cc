#include "apps/commands/sections.h"

#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::StatusOr<bool> ReadsInSections(const Options& options,
                                     const Model& model) {
  if (options.session.context > 0 || !options.book.instruction.empty() ||
      options.sampling.verify_against_full) {
    return false;
  }
  // The context must have room to spare for a section, the request, and an
  // answer.
  if (model.info().context < static_cast<int64_t>(2 * kSectionTokens)) {
    return false;
  }
  // A model that thinks first needs more room than an answer has.
  ASSIGN_OR_RETURN(
      const auto tag,
      model.Tokenize("<think>", TIERCEL_PARSE_SPECIAL, /*limits=*/{}));
  if (tag.size() == 1) return false;
  ASSIGN_OR_RETURN(const Json described, model.Describe());
  const auto parameters = described.at("parameters").get<int64_t>();
  return parameters >= kLeastParameters && parameters < kSmallParameters;
}

}  // namespace tiercel::cli

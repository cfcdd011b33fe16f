#ifndef TIERCEL_APPS_COMMANDS_SECTIONS_H_
#define TIERCEL_APPS_COMMANDS_SECTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/api.h"

namespace tiercel::cli {

// How a small model summarizes: it reads a text in sections, says little of
// each, and of that what the section supports stays (SupportedSentences). It
// loses its way in a longer text, and a long answer.
//
// SmolLM2-135M summarized a manual in sections of several lengths. The
// sentences whose words were the section's were 64 % at 300 tokens a section,
// 66 % at 600, 62 % at 1,000 and 52 % at 1,600.
inline constexpr size_t kSectionTokens = 800;
// Tokens of an answer, of which three sentences stay.
inline constexpr size_t kSectionAnswer = 160;
// Paragraphs of a summary at most unless --words is given, and words of one.
inline constexpr size_t kSectionParagraphs = 8;
inline constexpr int64_t kSectionWords = 40;

// Models of fewer parameters are small; of still fewer, such as those that
// tests are made of, none writes sentences.
inline constexpr int64_t kSmallParameters = 1'000'000'000;
inline constexpr int64_t kLeastParameters = 10'000'000;

// Whether a summary is made so: by a small model that does not think, where the
// options do not say how much of the text is read at once (-c), what is to be
// done with it, or that the text is to be compared with that of one reading.
// Errors: those of tiercel_model_describe and tiercel_tokenize.
absl::StatusOr<bool> ReadsInSections(const Options& options,
                                     const Model& model);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SECTIONS_H_

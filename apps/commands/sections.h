#ifndef TIERCEL_APPS_COMMANDS_SECTIONS_H_
#define TIERCEL_APPS_COMMANDS_SECTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"

namespace tiercel::cli {

// Sections, in which a small model summarizes: it reads a text in sections and
// says little of each, of which the sentences that the section supports stay
// (SupportedSentences). It loses its way in a longer text, and a long answer.
//
// SmolLM2-135M summarized a manual in sections of several lengths. The
// sentences whose words were the section's were 64 % at 300 tokens a section,
// 66 % at 600, 62 % at 1,000 and 52 % at 1,600.
inline constexpr size_t kSectionTokens = 800;
// Tokens of an answer, of which three sentences stay.
inline constexpr size_t kSectionAnswer = 160;
// The most paragraphs of a summary unless --words is given, and the words of
// one.
inline constexpr size_t kSectionParagraphs = 8;
inline constexpr int64_t kSectionWords = 40;

// A model of fewer parameters is small. One below kLeastParameters, as in
// tests, writes no sentences.
inline constexpr int64_t kSmallParameters = 1'000'000'000;
inline constexpr int64_t kLeastParameters = 10'000'000;

// Returns true if a summary is made in sections: by a small model that does not
// think, unless the options give a context (-c), an instruction, or a
// comparison with the text of one reading. Errors: those of
// tiercel_model_describe and tiercel_tokenize.
absl::StatusOr<bool> ReadsInSections(const Options& options,
                                     const Model& model);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SECTIONS_H_

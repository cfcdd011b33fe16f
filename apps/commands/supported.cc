#include "apps/commands/supported.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/reader/parts.h"
#include "lib/reader/text.h"

namespace tiercel::cli {
namespace {

// A shorter sentence is the number of a list or a heading.
constexpr size_t kLeastTokens = 5;

struct Sentence {
  std::string text;  // on one line
  double gain = 0;
  bool states = false;  // a statement that is complete
};

bool EndsIn(std::string_view text, const auto& signs) {
  return std::any_of(signs.begin(), signs.end(), [text](std::string_view sign) {
    return text.ends_with(sign);
  });
}

// Returns the sentence without the quotes and parentheses that close it.
std::string_view Unquoted(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kClosers = {
      "\"", "'", ")", "”", "’", "»", "」"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view closer : kClosers) {
      if (!text.ends_with(closer)) continue;
      text.remove_suffix(closer.size());
      found = true;
    }
  }
  return text;
}

// Returns true if it ends in a number such as "4.", which begins the next point
// of a list.
bool EndsInNumber(std::string_view sentence) {
  const size_t word = sentence.find_last_of(' ') + 1;
  const std::string_view last = sentence.substr(word);
  return last.size() <= 3 && last.ends_with('.') &&
         last.find_first_not_of("0123456789") == last.size() - 1;
}

bool States(std::string_view sentence) {
  static constexpr std::array<std::string_view, 9> kStops = {
      ".", "!", "…", "。", "！", "।", "۔", "።", "｡"};
  return EndsIn(Unquoted(sentence), kStops) && !EndsInNumber(sentence);
}

// The offsets at which sentences begin. A paragraph begins one, too, since the
// text before an empty line may be a heading or a point of a list.
std::vector<size_t> Begins(std::string_view text) {
  std::vector<size_t> begins = {0};
  for (const auto& more :
       {reader::SentenceBegins(text), reader::ParagraphBegins(text)}) {
    begins.insert(begins.end(), more.begin(), more.end());
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  return begins;
}

std::vector<Sentence> Sentences(std::string_view summary,
                                const std::vector<size_t>& ends,
                                const std::vector<double>& gains) {
  std::vector<Sentence> sentences;
  std::vector<size_t> begins = Begins(summary);
  begins.push_back(summary.size());
  size_t token = 0;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    Sentence sentence;
    sentence.text =
        reader::OneLine(summary.substr(begins[i], begins[i + 1] - begins[i]));
    size_t tokens = 0;
    // A token belongs to the sentence in which it ends, since the first token
    // of a sentence often begins with the blank before it.
    for (; token < ends.size() && ends[token] <= begins[i + 1]; ++token) {
      sentence.gain += gains[token];
      ++tokens;
    }
    if (tokens == 0 || sentence.text.empty()) continue;
    sentence.gain /= static_cast<double>(tokens);
    sentence.states = tokens >= kLeastTokens && States(sentence.text);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace

std::string SupportedSentences(std::string_view summary,
                               const std::vector<size_t>& ends,
                               const std::vector<double>& gains) {
  std::vector<Sentence> sentences = Sentences(summary, ends, gains);
  const auto states = [](const Sentence& sentence) { return sentence.states; };
  if (std::any_of(sentences.begin(), sentences.end(), states)) {
    std::erase_if(sentences, std::not_fn(states));
  }
  if (sentences.empty()) return "";
  std::string kept;
  size_t count = 0;
  for (const Sentence& sentence : sentences) {
    if (sentence.gain < kLeastGain || count == kMostSentences) continue;
    absl::StrAppend(&kept, count++ > 0 ? " " : "", sentence.text);
  }
  if (count > 0) return kept;
  return std::max_element(sentences.begin(), sentences.end(),
                          [](const Sentence& a, const Sentence& b) {
                            return a.gain < b.gain;
                          })
      ->text;
}

}  // namespace tiercel::cli

#include "apps/commands/book_summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/numbers.h"
#include "apps/commands/book.h"
#include "apps/commands/generation.h"
#include "apps/notes/notes.h"
#include "lib/reader/places.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// The JSON document's version, which goes up when a field changes its meaning.
constexpr int kSchema = 1;

class BookSummaryWriter {
 public:
  BookSummaryWriter(const Options& options, const document::Document& book,
                    BookSummary summary)
      : options_(options), book_(book), summary_(std::move(summary)) {}

  absl::Status Write();
  std::string Text() const { return TextOf(summary_); }

 private:
  std::string PlaceOf(const Node& node) const {
    return cli::PlaceOf(book_, summary_.book_tokens, node);
  }
  Json Document() const;
  reader::Notes Notes() const;
  std::vector<std::string> LeafHeadings() const;

  const Options& options_;
  const document::Document& book_;
  BookSummary summary_;
};

Json BookSummaryWriter::Document() const {
  const std::string text = Text();
  Json parts = PartsOf(book_, summary_, /*first_token=*/0);
  if (summary_.levels.back().size() > 1) {  // adds the summary as a whole
    Node whole = {0, book_.text.size(), 0, summary_.book_tokens, {}};
    whole.writing.text = text;
    parts.push_back(PartOf(book_, summary_.levels.size(), whole));
  }
  return TreesDocument(
      options_,
      {{"schema", kSchema},
       {"context", summary_.context},
       {"output",
        {{{"text", text},
          {"tokens", TokensOf(summary_)},
          {"finish_reason", WasCut(summary_) ? "length" : "stop"}}}}},
      {&summary_},
      {{"at_once", summary_.at_once},
       {"predicted", PredictedOf(options_, summary_)},
       {"parts", std::move(parts)}},
      summary_.warnings);
}

reader::Notes BookSummaryWriter::Notes() const {
  reader::Notes notes = NotesOn(options_, book_);
  const auto leaf_id = [](size_t index) {
    return absl::StrCat("part-", index + 1);
  };
  const bool has_parts = summary_.levels.size() > 1;
  reader::Notes::Section summary = {"Summary", "summary", {}};
  for (const Node& node : summary_.levels.back()) {
    const BookSummary::Level& leaves = summary_.levels.front();
    const auto leaf =
        std::find_if(leaves.begin(), leaves.end(),
                     [&](const Node& one) { return one.end > node.begin; });
    summary.Add(
        node.writing.text, PlaceOf(node),
        has_parts ? leaf_id(static_cast<size_t>(leaf - leaves.begin())) : "");
  }
  notes.sections.push_back(std::move(summary));
  if (!has_parts) return notes;
  const std::vector<std::string> headings = LeafHeadings();
  for (size_t i = 0; i < headings.size(); ++i) {
    reader::Notes::Section section = {headings[i], leaf_id(i), {}};
    section.Add(summary_.levels.front()[i].writing.text);
    notes.sections.push_back(std::move(section));
  }
  return notes;
}

// The place of each part of the book; parts in the same place are numbered,
// "(2 of 3)".
std::vector<std::string> BookSummaryWriter::LeafHeadings() const {
  std::vector<std::string> headings;
  for (const Node& leaf : summary_.levels.front()) {
    headings.push_back(PlaceOf(leaf));
  }
  for (size_t begin = 0; begin < headings.size();) {
    size_t end = begin + 1;
    while (end < headings.size() && headings[end] == headings[begin]) ++end;
    for (size_t i = begin; end - begin > 1 && i < end; ++i) {
      absl::StrAppend(&headings[i], " (", i - begin + 1, " of ", end - begin,
                      ")");
    }
    begin = end;
  }
  return headings;
}

absl::Status BookSummaryWriter::Write() {
  for (std::string& loss : LossesOf(summary_, "summary", "summaries")) {
    WriteWarnings({loss});
    summary_.warnings.push_back(std::move(loss));
  }
  if (options_.json) {  // one document only, so notes must be written first
    absl::Status noted = WriteNotes(options_, Notes());
    return noted.ok() ? WriteJson(Document()) : noted;
  }
  if (options_.statistics) WriteNote(TookOf(options_, summary_));
  return WriteNotes(options_, Notes());
}

}  // namespace

std::string PlaceOf(const document::Document& book, size_t book_tokens,
                    const Node& node) {
  std::string place = reader::NarrowPlace(book, node.begin, node.end);
  if (!place.empty()) return place;
  if (node.first_token == 0 && node.last_token == book_tokens) return "";
  return absl::StrCat("tokens ", node.first_token, " to ", node.last_token,
                      " of ", book_tokens);
}

Json PartOf(const document::Document& book, size_t level, const Node& node) {
  const reader::Places places = reader::PlacesOf(book, node.begin, node.end);
  return {{"level", level},         {"begin", node.first_token},
          {"end", node.last_token}, {"chapters", places.chapters},
          {"pages", places.pages},  {"text", node.writing.text}};
}

std::string TextOf(const BookSummary& summary) {
  std::string text;
  for (const Node& node : summary.levels.back()) {
    if (node.writing.text.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "\n\n", node.writing.text);
  }
  return text;
}

Json TokensOf(const BookSummary& summary) {
  Json tokens = Json::array();
  for (const Node& node : summary.levels.back()) {
    for (const int32_t id : node.writing.tokens) tokens.push_back(id);
  }
  return tokens;
}

bool IsLost(const BookSummary& summary) {
  return summary.cut + summary.unanswered > 0 && TextOf(summary).empty();
}

bool WasCut(const BookSummary& summary) {
  const BookSummary::Level& last = summary.levels.back();
  return IsLost(summary) ||
         std::any_of(last.begin(), last.end(),
                     [](const Node& node) { return node.writing.cut; });
}

Json PartsOf(const document::Document& book, const BookSummary& summary,
             size_t first_token) {
  Json parts = Json::array();
  for (size_t level = 0; level < summary.levels.size(); ++level) {
    for (Node node : summary.levels[level]) {
      if (node.skipped) continue;
      node.first_token += first_token;
      node.last_token += first_token;
      parts.push_back(PartOf(book, level, node));
    }
  }
  return parts;
}

Json TreesDocument(const Options& options, const Json& head,
                   const std::vector<const BookSummary*>& trees,
                   const Json& more, const std::vector<std::string>& warnings) {
  TotalCost spent;
  double seconds = 0;
  size_t nodes = 0;
  int layers = 0;
  for (const BookSummary* tree : trees) {
    spent.Add(tree->spent);
    seconds += tree->seconds;
    nodes += tree->resumed;
    layers += tree->resumed_layers;
  }
  Json document = DocumentOf(options, options.sampling.seed.value_or(0), head);
  document.update(spent.ToJson());
  document["seconds"] = seconds;
  document.update(more);
  document["resumed"] = {{"layers", layers}, {"nodes", nodes}};
  document["warnings"] = warnings;
  document["simulated"] = options.model.simulation.has_value();
  return document;
}

Json PredictedOf(const Options& options, const BookSummary& summary) {
  Json predicted = {{"seconds", nullptr}};
  for (const char* field : {"ttft_s", "tbt_ms", "host_bytes", "device_bytes"}) {
    predicted[field] = nullptr;
  }
  predicted.update(summary.spent.predicted_memory());
  if (!summary.predicted.has_value()) return predicted;
  const Forecast::Times& times = *summary.predicted;
  predicted["seconds"] = times.Seconds();
  predicted["ttft_s"] = times.read_s;
  // The time saved by drafts depends on how many are accepted.
  if (!options.sampling.HasDrafts() && times.answer > 0) {
    predicted["tbt_ms"] = 1e3 * times.gaps_s / times.answer;
  }
  return predicted;
}

std::string TookOf(const Options& options, const BookSummary& summary) {
  std::string took = absl::StrCat(
      Parts(summary.made), " made",
      summary.resumed > 0 ? absl::StrCat(", ", Parts(summary.resumed), " kept")
                          : "");
  if (summary.made > 0) {
    absl::StrAppend(&took, ": read ", Grouped(summary.spent.prompt_tokens()),
                    " tokens, ", Grouped(summary.spent.cached_tokens()),
                    " of them cached, and wrote ",
                    Grouped(summary.spent.output_tokens()), " in ",
                    Duration(summary.seconds));
    if (summary.predicted.has_value() && summary.resumed == 0) {
      absl::StrAppend(&took, " (predicted ",
                      Duration(summary.predicted->Seconds()), ")");
    }
  }
  return absl::StrCat(took, ", seed ", options.sampling.seed.value_or(0), "\n");
}

std::vector<std::string> LossesOf(const BookSummary& tree, const char* text,
                                  const char* texts) {
  std::vector<std::string> losses;
  if (tree.cut > 0) {
    losses.push_back(absl::StrCat("the ", texts, " of ", Parts(tree.cut),
                                  " were cut at ", tree.answer,
                                  " tokens; -n N for more"));
  }
  if (tree.unanswered > 0) {
    losses.push_back(absl::StrCat(Parts(tree.unanswered),
                                  " ended within a thought and have no ", text,
                                  "; --think off, or -n N for more"));
  }
  return losses;
}

void AddNewWarnings(const std::vector<std::string>& warnings,
                    std::vector<std::string>* all) {
  for (const std::string& warning : warnings) {
    if (std::find(all->begin(), all->end(), warning) == all->end()) {
      all->push_back(warning);
    }
  }
}

JoinedTexts JoinTexts(const BookSummary::Level& level, size_t first,
                      size_t last) {
  JoinedTexts joined;
  for (size_t i = first; i < last; ++i) {
    const bool is_empty = level[i].writing.text.empty();
    if (!joined.text.empty() && !is_empty) joined.text += "\n\n";
    joined.begins.push_back(joined.text.size());
    joined.text += level[i].writing.text;
  }
  return joined;
}

Node NodeOver(const BookSummary::Level& level, const JoinedTexts& joined,
              size_t begin, size_t end) {
  const auto node_at = [&](size_t offset) -> const Node& {
    const auto after =
        std::upper_bound(joined.begins.begin(), joined.begins.end(), offset);
    return level[static_cast<size_t>(after - joined.begins.begin()) - 1];
  };
  const Node& first = node_at(begin);
  const Node& last = node_at(end - 1);
  return {first.begin, last.end, first.first_token, last.last_token, {}};
}

std::string Parts(size_t count) {
  return absl::StrCat(count, count == 1 ? " part" : " parts");
}

absl::Status WriteParagraphs(const document::Document& book, size_t book_tokens,
                             const Node& node, bool follows) {
  std::string place = PlaceOf(book, book_tokens, node);
  if (!place.empty()) place = absl::StrCat("[", place, "]\n");
  ProseWriter prose;
  for (const std::string& text : reader::Paragraphs(node.writing.text)) {
    absl::Status s =
        prose.Write(absl::StrCat(follows ? "\n" : "", text, "\n", place));
    if (!s.ok()) return s;
    follows = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WriteBookSummary(const Options& options,
                                             const document::Document& book,
                                             BookSummary summary) {
  BookSummaryWriter writer(options, book, std::move(summary));
  RETURN_IF_ERROR(writer.Write());
  return writer.Text();
}

}  // namespace tiercel::cli

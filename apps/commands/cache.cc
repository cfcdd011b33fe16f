// tiercel cache: lists or clears the files that the program can make again.
#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/cli/tried.h"
#include "apps/commands/command.h"
#include "apps/commands/readings.h"
#include "apps/commands/watched.h"
#include "apps/terminal/output.h"
#include "apps/terminal/printable.h"
#include "include/tiercel.hpp"
#include "lib/reader/text.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

using Row = std::vector<std::string>;

std::string Day(const Json& seconds) {
  const auto time = seconds.get<std::time_t>();
  std::tm utc = {};
  gmtime_r(&time, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d", &utc)};
}

// The row of one file in RatesTable.
Row RowOf(const Json& file) {
  if (!file.contains("rates")) {
    return {absl::StrCat(file.at("file").get<std::string>(), " (not readable)"),
            Day(file.at("modified"))};
  }
  const Json& key = file.at("key");
  const Json& rates = file.at("rates");
  const auto text = [&](const char* name) {
    return key.at(name).is_string() ? key[name].get<std::string>()
                                    : Dump(key[name]);
  };
  const auto layers = key.at("layers").get<double>();
  const double step_s = layers * rates.at("step_s").get<double>() +
                        rates.at("logits_s").get<double>();
  const double row_s = layers * rates.at("prompt_row_s").get<double>();
  return {file.at("model").get<std::string>(),
          Day(file.at("modified")),
          text("isa"),
          text("threads"),
          absl::StrCat(text("type_k"), "/", text("type_v")),
          Grouped(static_cast<int64_t>(1 / row_s)),
          Fixed(1 / step_s, 1),
          absl::StrCat(Fixed(100 * file.at("spread").get<double>(), 0), " %",
                       file.at("steady").get<bool>() ? "" : " (busy)")};
}

// Lays out rows in columns; empty if there is no row below the heading.
std::string Table(const std::vector<Row>& rows) {
  if (rows.size() == 1) return "";
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], ColumnsOf(row[i]));
    }
  }
  std::string table;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i],
                      std::string(widths[i] - ColumnsOf(row[i]) + 2, ' '));
    }
    absl::StrAppend(&table, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return table;
}

// The table of measured rates, in tokens a second at the beginning of a text.
std::string RatesTable(const Json& files) {
  std::vector<Row> rows = {{"rates of", "measured", "ISA", "threads", "KV",
                            "read tok/s", "decode tok/s", "spread"}};
  for (const Json& file : files) rows.push_back(RowOf(file));
  return Table(rows);
}

// The name of a text for people, on one line.
std::string NameIn(const Json& row) {
  return reader::OneLine(row.value("name", ""));
}

std::string PromptCacheTable(const Json& texts) {
  std::vector<Row> rows = {
      {"texts read by", "last used", "tokens", "size", "text"}};
  for (const Json& text : texts) {
    const bool whole = text.contains("model");
    const char* const why =
        text.contains("unfinished") ? " (unfinished)" : " (not readable)";
    rows.push_back({whole ? text["model"].get<std::string>()
                          : text.at("file").get<std::string>() + why,
                    Day(text.at("used")), whole ? Grouped(text["tokens"]) : "",
                    Bytes(text.at("bytes").get<double>()), NameIn(text)});
  }
  return Table(rows);
}

// The table of books that were read in parts, which a later run can go on with.
std::string ReadingsTable(const Json& readings) {
  std::vector<Row> rows = {{"readings", "written", "parts", "size", "book"}};
  for (const Json& file : readings) {
    rows.push_back({file.at("file").get<std::string>(),
                    Day(file.at("modified")),
                    file.contains("parts") ? Dump(file["parts"]) : "(damaged)",
                    Bytes(file.at("bytes").get<double>()), NameIn(file)});
  }
  return Table(rows);
}

double TotalBytes(const Json& list) {
  double total = 0;
  for (const char* kind : {"files", "prompt_cache", "readings"}) {
    for (const Json& file : list.at(kind)) {
      total += file.at("bytes").get<double>();
    }
  }
  return total;
}

std::string Files(size_t count) {
  return absl::StrCat(count, count == 1 ? " file" : " files");
}

}  // namespace

absl::Status Cache(const Options& options) {
  const std::string& folder = options.session.cache_dir;
  if (folder.empty()) {
    return Error(Exit::kUsage, "no_cache",
                 "cache: there is no folder; set XDG_CACHE_HOME or HOME to an "
                 "absolute path");
  }
  ASSIGN_OR_RETURN(Json list, TriedJson([&] { return cache_list(folder); }));
  // An unreadable prompt cache does not keep the rest from being listed or
  // cleared.
  const absl::StatusOr<Json> texts =
      TriedJson([&] { return cache_list(options.session.prompt_cache_dir); });
  list.at("prompt_cache") =
      texts.ok() ? texts->at("prompt_cache") : Json::array();
  list["readings"] = ListReadings(folder);
  Json document = {{"cache_dir", folder}};
  if (options.cache_action == "list") {
    if (!texts.ok()) {
      document["warnings"] = {texts.status().message()};
      WriteWarnings({std::string(texts.status().message())});
    }
    const Json& rates = list.at("files");
    const Json& kept = list.at("prompt_cache");
    const Json& readings = list.at("readings");
    if (!options.json) {
      return WriteProse(absl::StrCat(
          folder, ": ", Files(rates.size() + kept.size() + readings.size()),
          "\n", RatesTable(rates), PromptCacheTable(kept),
          ReadingsTable(readings)));
    }
    document.update(list);
    return WriteJson(document);
  }
  size_t removed = ClearReadings(folder);
  std::vector<std::string> folders = {folder};
  if (texts.ok()) folders.push_back(options.session.prompt_cache_dir);
  absl::Status left = texts.status();
  for (const std::string& each : folders) {
    const absl::StatusOr<size_t> files =
        Tried([&] { return cache_clear(each); });
    left.Update(files.status());
    removed += files.value_or(0);
  }
  if (!left.ok()) {
    return Error(ExitOf(left), CodeOf(left),
                 absl::StrCat(left.message(), "; beside them ", Files(removed),
                              " removed"));
  }
  document["removed"] = removed;
  document["bytes"] = TotalBytes(list);
  return options.json
             ? WriteJson(document)
             : WriteProse(absl::StrCat(folder, ": removed ", Files(removed),
                                       ", ", Bytes(TotalBytes(list)), "\n"));
}

}  // namespace tiercel::cli

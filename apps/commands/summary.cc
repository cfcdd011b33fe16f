#include "apps/commands/summary.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "apps/cli/numbers.h"
#include "apps/commands/sampling.h"

namespace tiercel::cli {
namespace {

double Number(const Json& from, const char* key) {
  return from.is_object() && from.contains(key) && from[key].is_number()
             ? from[key].get<double>()
             : 0.0;
}

std::string Percent(double share) { return Fixed(100 * share, 0) + " %"; }

size_t TokensOf(const Json& report) {
  return report.at("output").at(0).at("tokens").size();
}

// The first line, without its end.
std::string TimesOf(const Json& report) {
  std::string line =
      absl::StrCat("prompt ", report.value("prompt_tokens", 0), " tokens");
  if (const int cached = report.value("cached_tokens", 0); cached > 0) {
    absl::StrAppend(&line, ", ", cached, " cached");
  }
  const Json predicted = report.value("predicted", Json::object());
  const auto add = [&](std::string_view label, double measured, double planned,
                       const char* unit, int digits) {
    if (!(measured > 0)) return;
    absl::StrAppend(&line, ", ", std::string(label), " ",
                    Fixed(measured, digits), *unit == '\0' ? "" : " ", unit);
    if (planned > 0) {
      absl::StrAppend(&line, " (predicted ", Fixed(planned, digits), ")");
    }
  };
  add("TTFT", Number(report, "ttft_s"), Number(predicted, "ttft_s"), "s", 2);
  add("prefill", Number(report, "prefill_tok_s"), 0, "tok/s", 1);
  add("TBT", Number(report.value("tbt_ms", Json()), "p50"),
      Number(predicted, "tbt_ms"), "ms", 1);
  add("decode", Number(report, "decode_tok_s"), 0, "tok/s", 1);
  const Json speculation = report.value("speculation", Json::object());
  const Json levels = speculation.value("levels", Json::array());
  if (levels.empty()) return line;
  add("tokens a sweep", Number(speculation, "tokens_per_sweep"), 0, "", 1);
  for (const Json& level : levels) {
    add(absl::StrCat("cost ratio of ", level.value("drafter", "")),
        Number(level, "cost_ratio"), 0, "", 1);
  }
  return line;
}

std::string DraftsOf(const Json& levels) {
  std::string line;
  for (const Json& level : levels) {
    const auto checked = level.value("checked", int64_t{0});
    const auto held = level.value("accepted", int64_t{0});
    absl::StrAppend(&line, line.empty() ? "drafts that held: " : ", ",
                    level.value("drafter", ""), " ", held, " of ", checked);
    if (checked > 0) {
      absl::StrAppend(
          &line, " (",
          Percent(static_cast<double>(held) / static_cast<double>(checked)),
          ")");
    }
  }
  return line.empty() ? line : line + "\n";
}

// The line of times by phase. The ledger counts the steps of plain decoding as
// "verify".
std::string PhasesOf(const Json& ledger, bool drafted) {
  constexpr double kGigabyte = 1e9;
  const double up = Number(ledger, "h2d_bytes");
  const double down = Number(ledger, "d2h_bytes");
  const bool linked = up + down > 0;
  if (!linked && !drafted) return "";
  const Json phases = ledger.value("phases", Json::object());
  std::string line;
  for (const char* name : {"prefill", "draft", "verify", "refresh"}) {
    const Json phase = phases.value(name, Json::object());
    const double seconds = Number(phase, "seconds");
    if (!(seconds > 0)) continue;
    const bool first = line.empty();
    const bool decodes = !drafted && std::string_view(name) == "verify";
    absl::StrAppend(&line, first ? "time: " : ", ", decodes ? "decode" : name,
                    " ", Fixed(seconds, 2), " s");
    if (linked) {
      absl::StrAppend(&line, first ? " (link busy " : " (",
                      Percent(Number(phase, "link_busy_share")), ")");
    }
  }
  if (linked) {
    absl::StrAppend(&line, "; link ", Fixed(up / kGigabyte, 2), " GB up, ",
                    Fixed(down / kGigabyte, 2), " GB down");
  }
  return line.empty() ? line : line + "\n";
}

// The line with the device bytes of a run over a link, and of its baseline.
std::string DevicesOf(const Json& report) {
  const Json baseline = report.value("baseline", Json::object());
  if (!baseline.contains("resident_pages") ||
      baseline["resident_pages"].is_null()) {
    return "";
  }
  const auto resident = [](const Json& of) {
    return of.at("resident_pages").get<int64_t>();
  };
  return absl::StrCat(
      "device: ", Bytes(Number(report.at("memory"), "device_bytes")),
      " taken, ", resident(report.at("ledger").at("formula")),
      " pages resident; full: ", Bytes(Number(baseline, "device_bytes")), ", ",
      resident(baseline), " resident\n");
}

}  // namespace

std::string AgreementOf(const Json& baseline, size_t tokens,
                        const SamplingOptions& sampling) {
  const bool agrees = baseline.value("agree", false);
  const std::string where =
      agrees ? ""
             : absl::StrCat(" at token ",
                            baseline.at("first_difference").get<int64_t>());
  std::string line;
  switch (PromiseOf(sampling)) {
    case Promise::kText:
      line = agrees ? "agrees with full" : "differs from full" + where;
      break;
    case Promise::kDistribution:
      line = agrees ? "agrees with full" : "same distribution as full";
      break;
    case Promise::kNone:
      line = agrees ? absl::StrCat("the same ", tokens,
                                   tokens == 1 ? " token" : " tokens")
                    : "first differs" + where;
      break;
  }
  if (baseline.at("speedup").is_number()) {
    absl::StrAppend(&line, ", speed-up ",
                    Fixed(baseline["speedup"].get<double>(), 2));
  }
  return line;
}

std::string SummaryOf(const Json& report, const SamplingOptions& sampling) {
  std::string text = TimesOf(report);
  if (report.contains("baseline")) {
    absl::StrAppend(
        &text, ", ",
        AgreementOf(report["baseline"], TokensOf(report), sampling));
  }
  if (report.value("simulated", false)) text += ", simulated";
  if (sampling.seeds.has_value()) {
    absl::StrAppend(&text, ", seeds ", sampling.seeds->first, " to ",
                    sampling.seeds->last, "\n");
  } else {
    absl::StrAppend(&text, ", seed ", sampling.seed.value_or(0), "\n");
  }
  const Json speculation = report.value("speculation", Json::object());
  const Json levels = speculation.value("levels", Json::array());
  return absl::StrCat(
      text, DraftsOf(levels),
      PhasesOf(report.value("ledger", Json::object()), !levels.empty()),
      DevicesOf(report));
}

std::string CutOf(const Json& output, const SamplingOptions& sampling) {
  if (output.at("finish_reason") != "length") return "";
  const auto tokens = static_cast<int64_t>(output.at("tokens").size());
  if (tokens != sampling.max_tokens) return "";
  return absl::StrCat("cut at -n ", tokens, " tokens; -n N for more\n");
}

std::string CutShortOf(const Json& report, const Options& options) {
  const Json& output = report.at("output").at(0);
  const auto tokens = static_cast<int64_t>(output.at("tokens").size());
  const auto context = report.at("context").get<int64_t>();
  if (output.at("finish_reason") != "length" ||
      tokens == options.sampling.max_tokens) {
    return "";
  }
  if (report.at("prompt_tokens").get<int64_t>() + tokens < context) {
    return absl::StrCat("ended within a thought after ", tokens,
                        " tokens, without an answer; --think off may give one");
  }
  return absl::StrCat("cut after ", tokens, " tokens, where the context of ",
                      context, " ends; ",
                      options.session.context > 0
                          ? "a larger -c has room for more"
                          : "a shorter text leaves room for more");
}

}  // namespace tiercel::cli

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/commands/command.h"
#include "apps/commands/sampling.h"
#include "apps/terminal/output.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

std::string PlanRow(const std::string& name, const std::string& value) {
  return TableRow(name, value, /*column=*/24);
}

// Returns "device memory   187.20 MiB" and its parts that are not zero.
std::string Tier(const std::string& name, const Json& tier) {
  double total = 0;
  std::string parts;
  for (const auto& [part, bytes] : tier.items()) {
    const auto size = bytes.get<double>();
    total += size;
    if (size > 0) absl::StrAppend(&parts, PlanRow("  " + part, Bytes(size)));
  }
  return PlanRow(name, Bytes(total)) + parts;
}

double SumOf(const Json& tier) {
  double total = 0;
  for (const auto& [part, bytes] : tier.items()) total += bytes.get<double>();
  return total;
}

// Returns the memory of each of several ranks, and the speed of one rank alone.
std::string RankRows(const Json& plan) {
  std::string out;
  int number = 0;
  for (const Json& rank : plan.at("ranks")) {
    absl::StrAppend(
        &out,
        PlanRow(
            absl::StrCat("rank ", number++),
            absl::StrCat(Bytes(SumOf(rank.at("device"))), " of its device, ",
                         Bytes(SumOf(rank.at("host"))),
                         " behind it, KV "
                         "heads ",
                         rank.at("kv_heads")[0].get<int>(), " to ",
                         rank.at("kv_heads")[1].get<int>() - 1,
                         rank.at("fits").get<bool>() ? "" : ": does not fit")));
  }
  if (const auto shared = plan.at("shared_kv_bytes").get<double>();
      shared > 0) {
    absl::StrAppend(&out, PlanRow("KV of shared heads", Bytes(shared)));
  }
  if (!plan.contains("one_rank")) return out;
  const Json& one = plan["one_rank"];
  absl::StrAppend(
      &out,
      PlanRow(
          "one rank alone",
          absl::StrCat(
              Fixed(one.at("tbt_ms").get<double>(), 2), " ms between tokens, ",
              Fixed(
                  one["tbt_ms"].get<double>() / plan.at("tbt_ms").get<double>(),
                  2),
              " times as long",
              one.at("fits").get<bool>() ? "" : "; it would not fit")));
  return out;
}

// Returns the plan as a table. Its time between tokens is without drafts, since
// their savings depend on how many are accepted.
std::string PlanTable(const Json& plan, bool drafts) {
  const bool simulated = plan.value("simulated", false);
  std::string out = PlanRow(
      "context",
      absl::StrCat(Grouped(plan.at("context").get<int64_t>()), " tokens"));
  absl::StrAppend(&out, Tier("device memory", plan.at("tiers").at("device")),
                  Tier("host memory", plan.at("tiers").at("host")));
  if (plan.at("tiers").contains("disk")) {
    absl::StrAppend(&out, Tier("disk", plan.at("tiers").at("disk")));
  }
  if (plan.at("ttft_s").is_number()) {
    absl::StrAppend(
        &out,
        PlanRow("time to first token",
                absl::StrCat(Fixed(plan["ttft_s"].get<double>(), 2),
                             " s, of a prompt that fills the context")),
        PlanRow("time between tokens",
                absl::StrCat(Fixed(plan["tbt_ms"].get<double>(), 2),
                             " ms, at the end of it",
                             drafts ? ", if nobody drafted" : "")));
  }
  if (plan.at("link_gb_s").is_number()) {
    absl::StrAppend(
        &out,
        PlanRow("link", absl::StrCat(Fixed(plan["link_gb_s"].get<double>(), 2),
                                     " GB/s")));
  }
  if (plan.contains("ranks")) absl::StrAppend(&out, RankRows(plan));
  absl::StrAppend(&out,
                  PlanRow("fits", plan.at("fits").get<bool>() ? "yes" : "no"));
  return simulated ? out + PlanRow("simulated", "yes") : out;
}

}  // namespace

absl::Status Plan(const Options& options) {
  ASSIGN_OR_RETURN(const Model model, OpenModel(options, TIERCEL_LOAD_HEADER));
  // Rates are not measured for a session that is not possible.
  RETURN_IF_ERROR(CheckSession(options, model));
  std::vector<std::string> warnings;
  RETURN_IF_ERROR(MeasureRates(options, model, /*job_s=*/nullptr, &warnings));
  ASSIGN_OR_RETURN(Json plan,
                   model.Plan(SessionParams(options, model.draft()).session));
  WriteWarnings(plan.at("warnings").get<std::vector<std::string>>());
  for (std::string& warning : warnings) {
    plan.at("warnings").push_back(std::move(warning));
  }
  RETURN_IF_ERROR(
      options.json ? WriteJson(plan)
                   : WriteProse(PlanTable(plan, options.sampling.HasDrafts())));
  if (plan.at("fits").get<bool>()) return absl::OkStatus();
  // The JSON document has said it already, and only one may be written.
  return Error(Exit::kMemory, "does_not_fit",
               options.json ? "" : plan.at("lacks").get<std::string>());
}

}  // namespace tiercel::cli

// The command line, `tiercel`: reads its arguments, runs one command, and says
// how that ended.
#include <malloc.h>

#include <exception>
#include <string>
#include <vector>

#include "apps/cli/args.h"
#include "apps/cli/error.h"
#include "apps/cli/tried.h"
#include "apps/commands/command.h"
#include "apps/serve/commands.h"
#include "apps/terminal/output.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

absl::Status Run(const Options& options) {
  if (options.command == "summarize") return Summarize(options);
  if (options.command == "ask") return Ask(options);
  if (options.command == "chat") return Chat(options);
  if (options.command == "generate") return Generate(options);
  if (options.command == "eval") return Eval(options);
  if (options.command == "tokenize") return Tokenize(options);
  if (options.command == "detokenize") return Detokenize(options);
  if (options.command == "text") return Text(options);
  if (options.command == "inspect") return Inspect(options);
  if (options.command == "plan") return Plan(options);
  if (options.command == "bench") return Bench(options);
  if (options.command == "serve") return serve::Serve(options);
  if (options.command == "batch") return serve::Batch(options);
  if (options.command == "cache") return Cache(options);
  return Error(Exit::kFailed, "internal", "no code for " + options.command);
}

absl::Status ParseAndRun(const std::vector<std::string>& args) {
  // Exceptions of the standard library end here.
  try {
    ASSIGN_OR_RETURN(CommandLine line, ParseArgs(args));
    if (!line.print.empty()) return WriteOut(line.print);
    WriteWarnings(line.options.warnings);
    return Run(line.options);
  } catch (...) {
    return StatusOf(std::current_exception());
  }
}

int Finish(const absl::Status& status, bool json) {
  if (status.ok() || IsReaderGone(status)) return static_cast<int>(Exit::kOk);
  std::string message(status.message());
  if (IsInterrupted(status) && !message.empty()) {
    message = InterruptedMessage();
  }
  const int exit_code = IsInterrupted(status) && SignalReceived() != 0
                            ? 128 + SignalReceived()
                            : static_cast<int>(ExitOf(status));
  if (message.empty()) return exit_code;
  const Json document = {
      {"error", {{"code", CodeOf(status)}, {"message", message}}}};
  // If stdout is full, stderr still says it.
  if (!json || !WriteJson(document).ok()) {
    WriteNote("tiercel: " + message + "\n");
  }
  return exit_code;
}

}  // namespace
}  // namespace tiercel::cli

int main(int argc, char** argv) {
  using namespace tiercel::cli;  // NOLINT: the whole file is about it
  // Threads do not allocate while they compute. A heap of its own would take a
  // thread 64 MiB of address space, which a limit (RLIMIT_AS) counts.
  mallopt(M_ARENA_MAX, 1);
  HoldStandardStreams();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const bool json = WantsJson(args);
  InstallSignalHandlers(json);
  return Finish(ParseAndRun(args), json);
}

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/command.h"
#include "apps/serve/commands.h"
#include "apps/serve/generations.h"
#include "apps/serve/guard.h"
#include "apps/serve/http.h"
#include "apps/serve/service.h"
#include "apps/terminal/output.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

absl::StatusOr<Guard> GuardOf(const cli::RequestOptions& requests) {
  std::vector<std::string> keys;
  if (!requests.api_key_file.empty()) {
    ASSIGN_OR_RETURN(keys, Guard::ReadKeys(requests.api_key_file));
  } else if (!IsLoopback(requests.host)) {
    cli::WriteWarnings(
        {absl::StrCat("--host ", requests.host,
                      " without --api-key-file: all who reach this address may "
                      "use the server")});
  }
  return Guard(requests.host, std::move(keys));
}

}  // namespace

absl::Status Serve(const cli::Options& options) {
  ASSIGN_OR_RETURN(Guard guard, GuardOf(options.requests));
  ASSIGN_OR_RETURN(cli::Model model, cli::OpenTalker(options));
  // It is destroyed after the service and the server, which use it.
  std::unique_ptr<Generations> generations;
  Service service(options, model, std::move(guard));
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                   HttpServer::Listen(options.requests.host,
                                      options.requests.port, &service));
  cli::WriteNote(absl::StrCat("listening at ", server->url(), "\n"));

  // While the model is loaded a signal ends the program at once.
  absl::Status loaded;
  std::optional<cli::CountSignals> counts;
  std::thread loader([&] {
    loaded = cli::LoadModel(options, &model);
    if (loaded.ok()) {
      const auto parallel = static_cast<size_t>(options.requests.parallel);
      auto opened = Generations::Open(options, model, parallel);
      loaded = opened.status();
      if (opened.ok()) generations = *std::move(opened);
    }
    if (!loaded.ok()) {
      server->Stop();
      return;
    }
    counts.emplace();
    service.Begin(generations.get());
    cli::WriteNote("ready\n");
  });
  const absl::Status served = server->Run();
  loader.join();
  generations.reset();
  RETURN_IF_ERROR(loaded);
  RETURN_IF_ERROR(served);
  counts.reset();
  return cli::InterruptedInOutput();
}

}  // namespace tiercel::serve

#include "apps/cli/default_paths.h"

#include <sys/stat.h>

#include <cstdlib>

#include "apps/cli/error.h"

namespace tiercel::cli {

namespace {

// tiercel's folder in the one that the variable `name` names, or in `otherwise`
// of the home. As XDG has it, a relative path is ignored.
std::string XdgFolder(const char* name, const char* otherwise) {
  const auto absolute = [](const char* variable) -> std::string {
    const char* value = std::getenv(variable);
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const std::string folder = absolute(name); !folder.empty()) {
    return folder + "/tiercel";
  }
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + otherwise + "/tiercel";
}

}  // namespace

std::string CacheFolder() { return XdgFolder("XDG_CACHE_HOME", "/.cache"); }

std::string StateFolder() {
  return XdgFolder("XDG_STATE_HOME", "/.local/state");
}

std::string PromptCacheFolder() {
  const std::string cache = CacheFolder();
  return cache.empty() ? "" : cache + "/prompt_cache";
}

absl::Status ChooseModel(ModelOptions* model) {
  if (!model->path.empty()) return absl::OkStatus();
  if (const char* path = std::getenv("TIERCEL_MODEL"); path != nullptr) {
    if (*path == '\0') {
      return Error(Exit::kUsage, "usage",
                   "TIERCEL_MODEL: it is set but empty; need a path");
    }
    model->path = path;
    model->from_environment = true;
    return absl::OkStatus();
  }
  const std::string cache = CacheFolder();
  const std::string installed =
      cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  struct stat info;
  if (cache.empty() || stat(installed.c_str(), &info) != 0) {
    return Error(Exit::kUsage, "no_model",
                 "no model: give -m PATH, set TIERCEL_MODEL, or run demo.sh, "
                 "which installs one");
  }
  model->path = installed;
  return absl::OkStatus();
}

}  // namespace tiercel::cli

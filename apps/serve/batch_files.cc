#include "apps/serve/batch_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/commands/whole_file.h"
#include "apps/notes/journal.h"
#include "apps/serve/mended_json.h"
#include "lib/status/status_macros.h"

namespace tiercel::serve {
namespace {

namespace fs = std::filesystem;
using cli::Exit;

std::string HashOf(std::string_view text) {
  return reader::Hex(reader::Fingerprint(text));
}

// [bytes, nanoseconds since 1970 of the last change] of a file, and of all
// files of a folder by name, so that another content of the same name is
// noticed.
Body StateOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Body::array();
  Body state = {info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 +
                                  info.st_mtim.tv_nsec};
  if (!S_ISDIR(info.st_mode)) return state;
  Body files = Body::object();
  std::error_code error;
  fs::recursive_directory_iterator entry(path, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) {
      files[entry->path().string()] = StateOf(entry->path());
    }
  }
  return {std::move(state), std::move(files)};
}

// The name of the document that a body asks for; empty: none.
std::string DocumentOf(const Body& body) {
  const Body own = body.value("tiercel", Body());
  const Body name = own.is_object() ? own.value("document", Body()) : Body();
  return name.is_string() ? name.get<std::string>() : "";
}

absl::Status NotABatch(const std::string& path, size_t number) {
  return cli::Error(
      Exit::kInput, "not_a_batch",
      absl::StrCat("'", path, "': line ", number,
                   " is no answer of tiercel batch; name another file with "
                   "-o"));
}

absl::Status NotRegular(const std::string& path, std::string_view use) {
  return cli::Error(Exit::kIo, "not_a_regular_file",
                    absl::StrCat("'", path,
                                 "': need a regular file, which can be read "
                                 "and ",
                                 std::string(use)));
}

absl::StatusOr<int> OpenToAppend(const std::string& path) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd == -1) return cli::SystemError("opening '" + path + "'");
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return cli::Error(Exit::kIo, "output_in_use",
                    absl::StrCat("'", path,
                                 "': another tiercel batch writes "
                                 "to it"));
}

// The lines of an output that stay, and the number that go.
struct Kept {
  std::string text;
  size_t dropped = 0;
};

// Returns true if a line without an end may be the beginning of an answer.
bool IsTorn(std::string_view line) {
  constexpr std::string_view kBegin = R"({"id":"batch_req_)";
  const size_t some = std::min(line.size(), kBegin.size());
  return line.substr(0, some) == kBegin.substr(0, some);
}

// Reads the answers of `job` and notes the lines that they answer.
absl::StatusOr<Kept> ReadAnswers(const std::string& path,
                                 const std::string& job,
                                 std::vector<BatchLine>* lines) {
  std::unordered_map<std::string, BatchLine*> by_id;
  for (BatchLine& line : *lines) by_id.emplace(line.custom_id, &line);
  Kept kept;
  std::ifstream file(path);
  std::string text;
  for (size_t number = 1; std::getline(file, text); ++number) {
    const bool blank = absl::StripAsciiWhitespace(text).empty();
    if (blank || (file.eof() && IsTorn(text))) {
      ++kept.dropped;
      continue;
    }
    const Body answer = Body::parse(text, nullptr, /*allow_exceptions=*/false);
    const Body own =
        answer.is_object() ? answer.value("tiercel", Body()) : Body();
    const Body id =
        answer.is_object() ? answer.value("custom_id", Body()) : Body();
    if (!own.is_object() || !id.is_string()) return NotABatch(path, number);
    if (own.value("job", Body()) != job) {
      return cli::Error(
          Exit::kInput, "another_job",
          absl::StrCat("'", path, "': line ", number,
                       " is of another model or other settings, which write "
                       "other texts; name another file with -o"));
    }
    const Body response = answer.value("response", Body());
    const bool failed =
        !response.is_object() || response.value("status_code", Body()) != 200;
    const auto line = by_id.find(id.get<std::string>());
    const bool stale = line != by_id.end() && (own.value("request", Body()) !=
                                                   line->second->fingerprint ||
                                               line->second->answered);
    if (failed || stale) {
      ++kept.dropped;
      continue;
    }
    if (line != by_id.end()) line->second->answered = true;
    absl::StrAppend(&kept.text, text, "\n");
  }
  if (file.bad()) return cli::SystemError("reading '" + path + "'");
  return kept;
}

}  // namespace

// ---- The input ----

absl::StatusOr<BatchInput> BatchInput::Open(const std::string& path) {
  BatchInput input(path);
  std::ifstream file(path);
  struct stat info = {};
  if (!file || stat(path.c_str(), &info) != 0) {
    return cli::SystemError("opening '" + path + "'");
  }
  if (!S_ISREG(info.st_mode)) return NotRegular(path, "read again");
  std::map<std::string, size_t> numbers;
  std::string text;
  std::streamoff begin = 0;
  for (size_t number = 1; std::getline(file, text); ++number) {
    const std::streamoff next =
        begin + static_cast<std::streamoff>(text.size()) + 1;
    if (!absl::StripAsciiWhitespace(text).empty()) {
      ASSIGN_OR_RETURN(BatchLine line, input.ReadLine(text, number));
      line.begin = begin;
      const auto [first, added] = numbers.emplace(line.custom_id, number);
      if (!added) {
        return input.Wrong(
            number, absl::StrCat("custom_id '", line.custom_id,
                                 "' is that of line ", first->second, ", too"));
      }
      input.lines_.push_back(std::move(line));
    }
    begin = next;
  }
  if (file.bad()) return cli::SystemError("reading '" + path + "'");
  return input;
}

absl::Status BatchInput::Wrong(size_t number, std::string_view message) const {
  return cli::Error(
      Exit::kInput, "invalid_batch",
      absl::StrCat("'", path_, "': line ", number, ": ", std::string(message)));
}

absl::StatusOr<BatchLine> BatchInput::ReadLine(std::string_view text,
                                               size_t number) const {
  absl::StatusOr<Body> parsed = ParseBody(text);
  const absl::Status unreadable = parsed.status();
  std::string mended;
  if (!parsed.ok()) {
    mended = MendedJson(text);
    text = mended;
    parsed = ParseBody(text);
  }
  if (!parsed.ok()) return Wrong(number, unreadable.message().data());
  const Body& request = *parsed;
  const auto text_of = [&](const char* name) {
    const Body value = request.value(name, Body());
    return value.is_string() ? value.get<std::string>() : "";
  };
  BatchLine line;
  line.number = number;
  line.unreadable = unreadable;
  line.custom_id = text_of("custom_id");
  if (line.custom_id.empty()) {
    return Wrong(number, "custom_id: need a string that is not empty");
  }
  if (text_of("method") != "POST") return Wrong(number, "method: need POST");
  const std::string url = text_of("url");
  if (url == "/v1/completions") {
    line.endpoint = Endpoint::kCompletion;
  } else if (url != "/v1/chat/completions") {
    return Wrong(number, absl::StrCat("url: got '", url,
                                      "', need /v1/chat/completions or "
                                      "/v1/completions"));
  }
  Body body = request.value("body", Body());
  if (!body.is_object()) return Wrong(number, "body: need an object");
  const std::string document = DocumentOf(body);
  KeepOrderOfSchemas(text, "/body", &body);
  line.fingerprint = HashOf(
      Body({url, body, document.empty() ? Body() : StateOf(PathOf(document))})
          .dump());
  return line;
}

absl::StatusOr<Body> BatchInput::ReadBody(const BatchLine& line) const {
  RETURN_IF_ERROR(line.unreadable);
  std::ifstream file(path_);
  std::string text;
  if (!file.seekg(line.begin) || !std::getline(file, text)) {
    return cli::SystemError("reading '" + path_ + "'");
  }
  Body request = Body::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object() ||
      request.value("custom_id", Body()) != line.custom_id ||
      !request.value("body", Body()).is_object()) {
    return Wrong(line.number, "it changed while the batch was made");
  }
  KeepOrderOfSchemas(text, "/body", &request["body"]);
  return std::move(request["body"]);
}

std::string BatchInput::PathOf(const std::string& document) const {
  return fs::path(path_).parent_path() / document;
}

// ---- The output ----

absl::StatusOr<BatchOutput> BatchOutput::Open(const std::string& path,
                                              const std::string& job,
                                              std::vector<BatchLine>* lines) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return NotRegular(path, "gone on with");
  }
  ASSIGN_OR_RETURN(const int fd, OpenToAppend(path));
  BatchOutput output(path, job, fd);
  ASSIGN_OR_RETURN(const Kept kept, ReadAnswers(path, job, lines));
  if (kept.dropped == 0) return output;
  ASSIGN_OR_RETURN(cli::WholeFile mended, cli::WholeFile::Create(path, 0666));
  RETURN_IF_ERROR(mended.Write(kept.text));
  RETURN_IF_ERROR(mended.Finish());
  // The file of this name is another now. The old one is locked until then.
  ASSIGN_OR_RETURN(const int again, OpenToAppend(path));
  return BatchOutput(path, job, again);
}

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : path_(std::move(other.path_)),
      job_(std::move(other.job_)),
      fd_(std::exchange(other.fd_, -1)) {}

BatchOutput::~BatchOutput() {
  if (fd_ != -1) close(fd_);
}

absl::Status BatchOutput::Add(const BatchLine& line, int http_status,
                              const Json& body) {
  const std::string id = BatchRequestId(job_, line);
  const Json answer = {
      {"id", "batch_" + id},
      {"custom_id", line.custom_id},
      {"response",
       {{"status_code", http_status}, {"request_id", id}, {"body", body}}},
      {"error", nullptr},
      {"tiercel", {{"job", job_}, {"request", line.fingerprint}}}};
  return cli::WriteAll(fd_, cli::Dump(answer) + "\n", "'" + path_ + "'");
}

std::string BatchRequestId(const std::string& job, const BatchLine& line) {
  return "req_" + HashOf(absl::StrCat(job, line.custom_id, line.fingerprint));
}

}  // namespace tiercel::serve

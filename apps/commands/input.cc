#include "apps/commands/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/cli/numbers.h"
#include "apps/terminal/signals.h"
#include "lib/documents/document.h"
#include "lib/documents/encoding.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
constexpr std::string_view kBlanks = " \t\r\n\v\f";

absl::Status TooLarge(const std::string& name, const std::string& size) {
  return Error(
      Exit::kInput, "input_too_large",
      absl::StrCat(name, ": got ", size, " bytes of text, reads at most ",
                   document::kMaxFileBytes));
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& name) {
  struct stat info = {};
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    return Error(Exit::kInput, "not_a_regular_file", name + " is a directory");
  }
  if (S_ISREG(info.st_mode) &&
      static_cast<uint64_t>(info.st_size) > document::kMaxFileBytes) {
    return TooLarge(name, absl::StrCat(info.st_size));
  }
  std::string text;
  for (;;) {
    if (!WaitToRead(fd)) return Interrupted();
    const size_t old_size = text.size();
    text.resize(old_size + kReadBytes);
    const ssize_t got = read(fd, text.data() + old_size, kReadBytes);
    const int error = errno;
    text.resize(old_size + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got == 0) return text;
    if (got < 0 && error != EINTR) {
      errno = error;
      return SystemError("reading " + name);
    }
    if (text.size() > document::kMaxFileBytes) {
      return TooLarge(name, absl::StrCat(text.size(), " or more"));
    }
  }
}

// Checks that all ids are in the vocabulary. An error is kInput, since the file
// is wrong and not the call.
absl::Status CheckTokens(const std::vector<int32_t>& ids, int64_t vocab) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocab) continue;
    return Error(Exit::kInput, "invalid_token",
                 absl::StrCat("token ", i, " is ", ids[i],
                              ", the vocabulary has 0 to ", vocab - 1));
  }
  return absl::OkStatus();
}

absl::Status NoTokens(const InputOptions& input) {
  return Error(
      Exit::kInput, "empty_prompt",
      input.file == "-" ? "standard input is empty" : "the text has no tokens");
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path == "-") return ReadAll(STDIN_FILENO, "stdin");
  int fd = -1;
  do {  // open() waits for the writer of a FIFO
    if (SignalReceived() != 0) return Interrupted();
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (fd == -1 && errno == EINTR);
  if (fd == -1 && errno == ENOENT) {
    return Error(Exit::kIo, "file_not_found", "no such file: '" + path + "'");
  }
  if (fd == -1) return SystemError("opening '" + path + "'");
  absl::StatusOr<std::string> text = ReadAll(fd, "'" + path + "'");
  close(fd);
  return text;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  absl::StatusOr<std::string> text = ReadInput(path);
  if (!text.ok()) return text;
  const std::string_view charset = document::FindByteOrderMark(*text).charset;
  if (charset.empty() || charset == "UTF-8") return text;
  const std::string wide(charset.substr(0, 6));  // without the byte order
  return Error(
      Exit::kInput, "not_utf8",
      absl::StrCat("'", path, "' is ", wide, "; need UTF-8, as iconv -f ", wide,
                   " -t UTF-8 makes it"));
}

absl::StatusOr<std::string> ReadProse(const std::string& path) {
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text;
  const auto error = document::CheckNuls(path == "-" ? "stdin" : path, *text);
  if (!error.has_value()) return text;
  return Error(Exit::kInput, error->code, error->message);
}

absl::StatusOr<std::vector<int32_t>> ParseTokens(std::string_view text) {
  std::vector<int32_t> ids;
  for (size_t begin = text.find_first_not_of(kBlanks);
       begin != std::string_view::npos;
       begin = text.find_first_not_of(kBlanks, begin)) {
    const size_t end =
        std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::optional<int64_t> id = ParseInt(word);
    if (!id.has_value() || *id < 0 ||
        *id > std::numeric_limits<int32_t>::max()) {
      const std::string shown(word.substr(0, 40));
      return Error(Exit::kInput, "invalid_token",
                   absl::StrCat("token ", ids.size(), " is '", shown,
                                "', need an id from 0 to 2147483647"));
    }
    ids.push_back(static_cast<int32_t>(*id));
    begin = end;
  }
  return ids;
}

absl::StatusOr<std::vector<int32_t>> ReadPrompt(const Model& model,
                                                const InputOptions& input,
                                                const TextLimits& limits) {
  absl::StatusOr<std::vector<int32_t>> ids = std::vector<int32_t>();
  if (input.tokens_file.has_value()) {
    ASSIGN_OR_RETURN(std::string text, ReadInput(*input.tokens_file));
    ids = ParseTokens(text);
    if (!ids.ok()) return ids.status();
    RETURN_IF_ERROR(CheckTokens(*ids, model.info().vocab));
  } else if (input.file.has_value()) {
    ASSIGN_OR_RETURN(std::string text, ReadProse(*input.file));
    ids = model.Tokenize(text, TIERCEL_ADD_BOS, limits);
  } else {
    ids = model.Tokenize(*input.text, TIERCEL_ADD_BOS, limits);
  }
  if (ids.ok() && ids->empty()) {
    return NoTokens(input);
  }
  return ids;
}

absl::StatusOr<std::vector<int32_t>> ReadBeginning(const Model& model,
                                                   const InputOptions& input,
                                                   size_t needed) {
  if (!input.file.has_value()) return ReadPrompt(model, input);
  ASSIGN_OR_RETURN(const std::string text, ReadProse(*input.file));
  // Near the end of a part the ids may differ from the text's, so only half of
  // them are kept.
  for (size_t bytes = 2 * needed + 1;; bytes *= 2) {
    const std::string_view part = std::string_view(text).substr(0, bytes);
    absl::StatusOr<std::vector<int32_t>> ids =
        model.Tokenize(part, TIERCEL_ADD_BOS, /*limits=*/{});
    if (!ids.ok()) return ids;
    if (ids->empty()) return NoTokens(input);
    if (part.size() == text.size()) return ids;
    ids->resize(ids->size() / 2);
    if (ids->size() >= needed) return ids;
  }
}

}  // namespace tiercel::cli

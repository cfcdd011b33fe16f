#ifndef TIERCEL_APPS_SERVE_BATCH_FILES_H_
#define TIERCEL_APPS_SERVE_BATCH_FILES_H_

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/serve/request.h"
#include "apps/terminal/output.h"

namespace tiercel::serve {

using cli::Json;

// The files of a batch, in OpenAI's form. A line of the input is
//   {"custom_id", "method": "POST", "url", "body"}
// and one of the output
//   {"id", "custom_id", "response": {"status_code", "request_id", "body"},
//    "error", "tiercel": {"job", "request"}}
// with fingerprints of the job and of the input's line.

struct BatchLine {
  size_t number = 0;  // from 1
  std::streamoff begin = 0;
  std::string custom_id;
  Endpoint endpoint = Endpoint::kChat;
  std::string fingerprint;  // changes with URL, body and document
  bool answered = false;    // the output has it
  absl::Status unreadable;  // the error of one with a character or number that
                            // cannot be read (MendedJson)
};

// An input whose every line was checked, but for the bodies of its requests.
class BatchInput {
 public:
  // Errors: io_error; invalid_batch, which names the line, also for a custom_id
  // that two lines have.
  static absl::StatusOr<BatchInput> Open(const std::string& path);

  std::vector<BatchLine>& lines() { return lines_; }
  const std::vector<BatchLine>& lines() const { return lines_; }
  // Errors: invalid_batch; that of an unreadable line.
  absl::StatusOr<Body> ReadBody(const BatchLine& line) const;
  // The path of a document that a request names.
  std::string PathOf(const std::string& document) const;

 private:
  explicit BatchInput(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<BatchLine> ReadLine(std::string_view text,
                                     size_t number) const;
  absl::Status Wrong(size_t number, std::string_view message) const;

  std::string path_;
  std::vector<BatchLine> lines_;
};

// An output to which answers are added, each a whole line. Only one process at
// a time has it.
class BatchOutput {
 public:
  // Opens it for the job of the fingerprint `job`, and notes which of `lines`
  // it has answers to. An answer that failed, one to another body, and a last
  // line that is torn are removed. Errors: io_error; not_a_batch; another_job;
  // output_in_use.
  static absl::StatusOr<BatchOutput> Open(const std::string& path,
                                          const std::string& job,
                                          std::vector<BatchLine>* lines);
  BatchOutput(BatchOutput&& other) noexcept;
  BatchOutput& operator=(BatchOutput&&) = delete;
  ~BatchOutput();

  // Adds the answer to a line: a reply of this HTTP status.
  absl::Status Add(const BatchLine& line, int http_status, const Json& body);

 private:
  BatchOutput(std::string path, std::string job, int fd)
      : path_(std::move(path)), job_(std::move(job)), fd_(fd) {}

  std::string path_;
  std::string job_;
  int fd_;
};

// The name of the request of a line: of its answer, too.
std::string BatchRequestId(const std::string& job, const BatchLine& line);

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_BATCH_FILES_H_

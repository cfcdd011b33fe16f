#include "apps/commands/token_writer.h"

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::Status TokenWriter::Begin() {
  if (options_.json) return absl::OkStatus();
  if (!question_.empty()) return WriteOut(absl::StrCat("# ", question_, "\n"));
  if (!options_.sampling.seeds.has_value()) return absl::OkStatus();
  return WriteOut(absl::StrCat("# seed ", seed_, "\n"));
}

absl::Status TokenWriter::Write(int32_t id, std::string_view text,
                                std::string_view thought) {
  if (options_.stream) {
    Json line = {{"token", id}, {"text", text}};
    if (!thought.empty()) line["reasoning"] = thought;
    if (index_.has_value()) line["index"] = *index_;
    if (options_.sampling.seeds.has_value()) line["seed"] = seed_;
    return WriteJson(line);
  }
  if (options_.json) return absl::OkStatus();
  const bool first = !std::exchange(open_line_, true);
  if (!as_ids_) {
    RETURN_IF_ERROR(prose_.WriteThought(thought));
    return prose_.Write(text);
  }
  return prose_.Write(absl::StrCat(first ? "" : " ", id));
}

absl::Status TokenWriter::End() {
  if (options_.json || !open_line_) return absl::OkStatus();
  open_line_ = false;
  const absl::Status finished = prose_.Finish();
  return finished.ok() ? WriteOut("\n") : finished;
}

absl::Status InOrder::Write(size_t text, int32_t id, std::string_view piece,
                            std::string_view thought) {
  TokenWriter& writer = texts_[text].writer;
  if (writer.MayMix()) return writer.Write(id, piece, thought);
  RETURN_IF_ERROR(Advance());
  if (text == next_) {
    RETURN_IF_ERROR(Begin());
    return writer.Write(id, piece, thought);
  }
  texts_[text].waiting.push_back(
      {id, std::string(piece), std::string(thought)});
  return absl::OkStatus();
}

absl::Status InOrder::Advance() {
  while (next_ < texts_.size() && ended_(next_)) {
    RETURN_IF_ERROR(Begin());
    RETURN_IF_ERROR(End());
    ++next_;
    begun_ = false;
  }
  return next_ < texts_.size() ? Begin() : absl::OkStatus();
}

absl::Status InOrder::End() {
  return next_ < texts_.size() ? texts_[next_].writer.End() : absl::OkStatus();
}

// Begins the text whose turn it is, with the tokens that waited.
absl::Status InOrder::Begin() {
  if (begun_) return absl::OkStatus();
  begun_ = true;
  Text& text = texts_[next_];
  RETURN_IF_ERROR(text.writer.Begin());
  for (const Token& token : text.waiting) {
    RETURN_IF_ERROR(text.writer.Write(token.id, token.text, token.thought));
  }
  text.waiting.clear();
  return absl::OkStatus();
}

}  // namespace tiercel::cli

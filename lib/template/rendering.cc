#include "lib/template/rendering.h"

#include <utility>

#include "lib/template/lexer.h"

namespace tiercel::jinja {

void Rendering::Fail(std::string_view message) {
  if (status_.ok()) status_ = TemplateError(line_, message);
}

void Rendering::FailSteps() { Fail("the template takes too many steps"); }

bool Rendering::Take(size_t bytes) {
  if (bytes > limits_.bytes - bytes_) {
    Fail("the template needs too much memory");
    return false;
  }
  bytes_ += bytes;
  return ok();
}

Charge::Charge(Charge&& other) noexcept
    : rendering_(other.rendering_), bytes_(std::exchange(other.bytes_, 0)) {}

Charge& Charge::operator=(Charge&& other) noexcept {
  std::swap(rendering_, other.rendering_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Charge::~Charge() {
  if (bytes_ > 0) rendering_->Return(bytes_);
}

bool Charge::Grow(size_t bytes) {
  if (!rendering_->ok() || !rendering_->Take(bytes)) return false;
  bytes_ += bytes;
  return true;
}

void TextBuilder::Append(const Text& text, size_t begin, size_t end) {
  if (begin >= end || !rendering_.StepBytes(end - begin)) return;
  const size_t flips = text_.num_flips();
  if (!charge_.Grow(end - begin)) return;
  text_.Append(text, begin, end);
  // A flip takes a word; a join adds at most one.
  charge_.Grow((text_.num_flips() - flips) * sizeof(size_t));
}

void TextBuilder::Append(std::string_view bytes, Origin origin) {
  if (bytes.empty() || !rendering_.StepBytes(bytes.size())) return;
  const size_t flips = text_.num_flips();
  if (!charge_.Grow(bytes.size())) return;
  text_.Append(bytes, origin);
  charge_.Grow((text_.num_flips() - flips) * sizeof(size_t));
}

}  // namespace tiercel::jinja

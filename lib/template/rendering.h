#ifndef TIERCEL_LIB_TEMPLATE_RENDERING_H_
#define TIERCEL_LIB_TEMPLATE_RENDERING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/template/text.h"

namespace tiercel::jinja {

// The limits of one rendering and the first error in it.
//
// Errors are sticky: after Fail() every Step() returns false, loops end, and
// results are discarded. So evaluation checks for errors only at loops. Not
// thread-safe; outlives every value made in it.
class Rendering {
 public:
  struct Limits {
    uint64_t steps;
    size_t bytes;  // most bytes of live values and output
  };
  explicit Rendering(const Limits& limits) : limits_(limits) {}
  Rendering(const Rendering&) = delete;
  Rendering& operator=(const Rendering&) = delete;

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  void Fail(std::string_view message);  // at the current line; the first stays
  void set_line(int line) { line_ = line; }
  int line() const { return line_; }

  // Counts work, about one step per expression. Returns false once the
  // rendering has failed, as it does when the steps are spent.
  bool Step(uint64_t steps = 1) {
    steps_ += steps;
    if (steps_ > limits_.steps) FailSteps();
    return status_.ok();
  }
  // Counts a pass over bytes.
  bool StepBytes(size_t bytes) { return Step(1 + bytes / 64); }

 private:
  friend class Charge;
  void FailSteps();
  bool Take(size_t bytes);  // false, and a failure, beyond the limit
  void Return(size_t bytes) { bytes_ -= bytes; }

  const Limits limits_;
  uint64_t steps_ = 0;
  size_t bytes_ = 0;
  int line_ = 1;
  absl::Status status_;
};

// Memory that is charged to a rendering's limit, and returned when destroyed.
class Charge {
 public:
  Charge() = default;  // holds nothing: constants of the template itself
  explicit Charge(Rendering& rendering) : rendering_(&rendering) {}
  Charge(Charge&& other) noexcept;
  Charge& operator=(Charge&& other) noexcept;
  ~Charge();

  bool Grow(size_t bytes);  // false if the rendering has failed

 private:
  Rendering* rendering_ = nullptr;
  size_t bytes_ = 0;
};

// A text under construction. If an append exceeds the limit the rendering
// fails.
class TextBuilder {
 public:
  explicit TextBuilder(Rendering& rendering)
      : rendering_(rendering), charge_(rendering) {}

  void Append(const Text& text) { Append(text, 0, text.size()); }
  void Append(const Text& text, size_t begin, size_t end);
  void Append(std::string_view bytes, Origin origin = Origin::kTemplate);

  const Text& text() const { return text_; }
  Text TakeText() { return std::move(text_); }
  Charge TakeCharge() { return std::move(charge_); }

 private:
  Rendering& rendering_;
  Text text_;
  Charge charge_;
};

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_RENDERING_H_

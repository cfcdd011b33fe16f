#ifndef TIERCEL_LIB_TEMPLATE_TEXT_H_
#define TIERCEL_LIB_TEMPLATE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"

namespace tiercel::jinja {

// Converts to Abseil's string_view, which may be a type of its own.
inline absl::string_view Abseil(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

enum class Origin : uint8_t { kTemplate, kMessage };

// A UTF-8 string that records for each byte whether the template or a message
// wrote it, through every cut and join. So a message can never spell a special
// token, however the template takes it apart.
//
// Invariants:
// 1. flips_ ascends strictly, and each flip is < size(): an origin that no
//    byte has is not recorded.
// 2. The byte at i is the message's iff an odd number of flips is <= i.
class Text {
 public:
  Text() = default;
  explicit Text(std::string_view bytes, Origin origin = Origin::kTemplate);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  size_t num_flips() const { return flips_.size(); }

  Origin OriginAt(size_t position) const;  // position < size()

  void Append(std::string_view bytes, Origin origin);
  // Appends bytes [begin, end) of `other`, which may be this text.
  void Append(const Text& other, size_t begin, size_t end);
  void Append(const Text& other) { Append(other, 0, other.size()); }

  Text Cut(size_t begin, size_t end) const;

  // Calls visit(std::string_view, Origin) for each longest run of one origin.
  template <typename Visit>
  void ForEachRun(Visit visit) const {
    size_t begin = 0;
    Origin origin = Origin::kTemplate;
    for (size_t i = 0; i <= flips_.size(); ++i) {
      const size_t end = i < flips_.size() ? flips_[i] : bytes_.size();
      if (end > begin) visit(bytes().substr(begin, end - begin), origin);
      origin = Other(origin);
      begin = end;
    }
  }

 private:
  static Origin Other(Origin origin) {
    return origin == Origin::kTemplate ? Origin::kMessage : Origin::kTemplate;
  }
  Origin EndOrigin() const {
    return flips_.size() % 2 == 0 ? Origin::kTemplate : Origin::kMessage;
  }

  std::string bytes_;
  std::vector<size_t> flips_;
};

// Returns the number of characters. Characters are code points; a byte that
// cannot begin one belongs to the character before it, so any byte string has
// characters.
size_t CountCharacters(std::string_view text);
// The end of the character that begins at `begin` < text.size().
size_t CharacterEnd(std::string_view text, size_t begin);
// The beginning of the character that ends at `end` > 0.
size_t CharacterBegin(std::string_view text, size_t end);
// Returns true for white space as Python's str.isspace() defines it.
bool IsSpace(std::string_view character);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_TEXT_H_

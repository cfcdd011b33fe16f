#ifndef TIERCEL_APPS_READER_JOURNAL_H_
#define TIERCEL_APPS_READER_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tiercel::reader {

// A number that changes with the text (FNV-1a): it tells texts apart that
// nobody made to be mistaken for each other.
uint64_t Fingerprint(std::string_view bytes);
// As 16 hexadecimal digits.
std::string Hex(uint64_t number);

// What the model wrote about one part.
struct Writing {
  std::string text;
  std::vector<int32_t> tokens;
  bool cut = false;  // at the most tokens a part may have
};

// The finished parts of a reading, as they are kept in a file. A part is found
// by its level, its index there and a fingerprint of what was read for it, so
// that none can be taken for another.
class Journal {
 public:
  // `key` is all that the writings depend on; `name` what people call the book,
  // which finds nothing. What of that is no UTF-8 becomes U+FFFD.
  explicit Journal(std::string key, const std::string& name = "");

  // A whole file of this format and key; absent for any other bytes.
  static std::optional<Journal> Parse(std::string_view bytes,
                                      const std::string& key);
  std::string Serialize() const;

  // What of a text is no UTF-8 becomes U+FFFD, as in the file.
  void Add(int level, size_t index, uint64_t prompt, Writing writing);
  // Adds what `other`, of the same key, has beside.
  void Merge(Journal other);
  // Null: there is none.
  const Writing* Find(int level, size_t index, uint64_t prompt) const;
  size_t size() const { return nodes_.size(); }
  const std::string& key() const { return key_; }

 private:
  struct Node {
    uint64_t prompt;
    Writing writing;
  };
  std::string key_;
  std::string name_;
  std::map<std::pair<int, size_t>, Node> nodes_;
};

// What a journal's bytes are, whatever its key; absent where they are none.
struct JournalHead {
  std::string name;  // empty: it has none
  size_t parts = 0;
};
std::optional<JournalHead> HeadOf(std::string_view bytes);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_JOURNAL_H_

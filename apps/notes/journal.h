#ifndef TIERCEL_APPS_NOTES_JOURNAL_H_
#define TIERCEL_APPS_NOTES_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tiercel::reader {

// Returns a number that changes with the text (FNV-1a). It tells texts apart,
// but does not resist texts that were made to collide.
uint64_t Fingerprint(std::string_view bytes);
// Formats a number as 16 hexadecimal digits.
std::string Hex(uint64_t number);

// The text that the model wrote about one part.
struct Writing {
  // The text that a token adds to the answer, and to the thought before it.
  struct Piece {
    std::string text;
    std::string thought;
  };
  std::string text;
  std::vector<int32_t> tokens;
  bool cut = false;                // at the most tokens that a part may have
  std::vector<Piece> pieces = {};  // one for each token that was written
};

// The finished parts of a reading, as they are kept in a file. A part is found
// by its level, its index in that level and a fingerprint of the prompt that it
// answers, so that no part is taken for another.
class Journal {
 public:
  // `key` holds all that the writings depend on. `name` is what people call the
  // book; it is not used to find anything. Bytes in it that are not UTF-8
  // become U+FFFD.
  explicit Journal(std::string key, const std::string& name = "");

  // Parses a whole file of this format and key; nothing for any other bytes.
  static std::optional<Journal> Parse(std::string_view bytes,
                                      const std::string& key);
  std::string Serialize() const;

  // Bytes of its texts that are not UTF-8 become U+FFFD, as in the file.
  void Add(int level, size_t index, uint64_t prompt, Writing writing);
  // Adds the parts of `other`, a journal of the same key, that this one lacks.
  void Merge(Journal other);
  // Returns null if there is no such part.
  const Writing* Find(int level, size_t index, uint64_t prompt) const;
  size_t size() const { return nodes_.size(); }
  size_t CountAt(int level) const;
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

// The head of a journal's bytes, whatever its key; nothing if they are no
// journal.
struct JournalHead {
  std::string name;  // empty: it has none
  size_t parts = 0;
};
std::optional<JournalHead> HeadOf(std::string_view bytes);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_NOTES_JOURNAL_H_

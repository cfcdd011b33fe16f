#include "lib/text/nesting.h"

#include <algorithm>

namespace tiercel {

int NestingOf(std::string_view text, const NestingSigns& signs) {
  int depth = 0;
  int deepest = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (signs.comment != 0 && c == signs.comment) {
      i = std::min(text.find('\n', i), text.size());
    } else if (signs.quotes.find(c) != signs.quotes.npos) {
      quote = c == '[' ? ']' : c;
    } else if (signs.open.find(c) != signs.open.npos) {
      deepest = std::max(deepest, ++depth);
    } else if (signs.close.find(c) != signs.close.npos) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace tiercel

#ifndef TIERCEL_MODELS_CHAT_FORMAT_H_
#define TIERCEL_MODELS_CHAT_FORMAT_H_

#include <string>

#include "models/chat/value.h"

namespace tiercel::jinja {

// Appends str(value), as {{ value }} writes it; nothing for undefined.
void AppendStr(Rendering& rendering, const Value& value, TextBuilder* out);
// The str() of a value as a text; a string's own where it is one.
Text Str(Rendering& rendering, const Value& value);
// Python's repr of a float: the shortest digits that read back the same.
std::string FloatRepr(double value);

// json.dumps with ensure_ascii off unless asked for.
struct JsonStyle {
  Text item_separator;
  Text key_separator;
  Text indent;  // one level's worth
  bool multiline = false;
  bool sort_keys = false;
  bool ensure_ascii = false;
};
void AppendJson(Rendering& rendering, const Value& value,
                const JsonStyle& style, TextBuilder* out);

}  // namespace tiercel::jinja

#endif  // TIERCEL_MODELS_CHAT_FORMAT_H_

#ifndef TIERCEL_LIB_TEMPLATE_FORMAT_H_
#define TIERCEL_LIB_TEMPLATE_FORMAT_H_

#include <string>

#include "lib/template/value.h"

namespace tiercel::jinja {

// Appends str(value), as {{ value }} writes it; nothing for undefined.
void AppendStr(Rendering& rendering, const Value& value, TextBuilder* out);
struct ReprStyle {
  bool ascii = false;   // Python's ascii(): other characters are escaped
  bool sorted = false;  // the items of dicts by their keys
};
// Appends repr(value).
void AppendRepr(Rendering& rendering, const Value& value, TextBuilder* out,
                const ReprStyle& style = {});
// Returns the str() of a value; for a string the string itself.
Text Str(Rendering& rendering, const Value& value);
// Python's repr of a float: the shortest digits that read back the same.
std::string FloatRepr(double value);

// json.dumps with ensure_ascii off by default.
struct JsonStyle {
  Text item_separator;
  Text key_separator;
  Text indent;  // indentation of one level
  bool multiline = false;
  bool sort_keys = false;
  bool ensure_ascii = false;
};
void AppendJson(Rendering& rendering, const Value& value,
                const JsonStyle& style, TextBuilder* out);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_FORMAT_H_

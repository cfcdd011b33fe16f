#ifndef TIERCEL_MODELS_TOKENIZER_GGUF_PRES_H_
#define TIERCEL_MODELS_TOKENIZER_GGUF_PRES_H_

#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/pretokenize.h"

namespace tiercel {

// The meaning of names in tokenizer.ggml.pre, each of which says it all.
struct GgufPre {
  std::vector<std::string_view> names;
  std::vector<Cut> cuts;
  bool nfc = false;
  bool ignore_merges = false;
  bool adds_bos = false;  // if the file does not say
};

const std::vector<GgufPre>& AllGgufPres();

// Returns null if the name is not known.
const GgufPre* FindGgufPre(std::string_view name);

// Lists the names that are known.
std::string NamesOfGgufPres();

// Returns the first name with these patterns; "custom" if there is none.
std::string_view NameOfCuts(const std::vector<Cut>& cuts);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_GGUF_PRES_H_

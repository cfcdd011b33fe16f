#ifndef TIERCEL_LIB_DOCUMENTS_ERROR_H_
#define TIERCEL_LIB_DOCUMENTS_ERROR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "lib/documents/document.h"

namespace tiercel::document {

// Returns an error about the contents of the document that is called `name`.
inline Error InputError(const std::string& name, std::string code,
                        const std::string& message) {
  return {Error::Kind::kInput, std::move(code), name + ": " + message};
}

// `what` names the part that is too large: "the text".
inline Error TooLarge(const std::string& name, const std::string& what,
                      uint64_t bytes, uint64_t most) {
  return InputError(name, "document_too_large",
                    what + " has " + std::to_string(bytes) +
                        " bytes, reads at most " + std::to_string(most));
}

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_ERROR_H_

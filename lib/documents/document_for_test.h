#ifndef TIERCEL_LIB_DOCUMENTS_DOCUMENT_FOR_TEST_H_
#define TIERCEL_LIB_DOCUMENTS_DOCUMENT_FOR_TEST_H_

#include <string>
#include <utility>
#include <variant>

#include "gtest/gtest.h"
#include "lib/documents/document.h"

namespace tiercel::document {

// Returns the document; an error fails the test and gives an empty one.
inline Document Good(Result result) {
  const Error* error = std::get_if<Error>(&result);
  EXPECT_EQ(error, nullptr) << error->code << ": " << error->message;
  return error == nullptr ? std::get<Document>(std::move(result)) : Document();
}

inline std::string CodeOf(const Result& result) {
  const Error* error = std::get_if<Error>(&result);
  return error == nullptr ? "no error" : error->code;
}

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_DOCUMENT_FOR_TEST_H_

#ifndef TIERCEL_LIB_TEMPLATE_PARSER_H_
#define TIERCEL_LIB_TEMPLATE_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/template/ast.h"

namespace tiercel::jinja {

// Parses the template to a tree at most kMaxTreeDepth deep. Errors:
// template_error.
absl::StatusOr<Body> ParseTemplate(std::string_view source);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_PARSER_H_

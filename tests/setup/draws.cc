#include "tests/setup/draws.h"

namespace tiercel {

float NormalFloats::operator()(std::mt19937& random) { return draw_(random); }

float UniformFloats::operator()(std::mt19937& random) { return draw_(random); }

}  // namespace tiercel

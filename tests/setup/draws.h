#ifndef TIERCEL_TESTS_SETUP_DRAWS_H_
#define TIERCEL_TESTS_SETUP_DRAWS_H_

// Random floats for tests of kernels, which draw millions. Tests are not
// optimised; these functions are. The numbers are those of the standard
// library.

#include <random>

namespace tiercel {

class NormalFloats {
 public:
  explicit NormalFloats(float mean = 0.0f, float deviation = 1.0f)
      : draw_(mean, deviation) {}
  float operator()(std::mt19937& random);

 private:
  std::normal_distribution<float> draw_;
};

class UniformFloats {
 public:
  UniformFloats(float least, float end) : draw_(least, end) {}
  float operator()(std::mt19937& random);

 private:
  std::uniform_real_distribution<float> draw_;
};

}  // namespace tiercel

#endif  // TIERCEL_TESTS_SETUP_DRAWS_H_

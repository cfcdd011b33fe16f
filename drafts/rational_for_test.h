#ifndef TIERCEL_DRAFTS_RATIONAL_FOR_TEST_H_
#define TIERCEL_DRAFTS_RATIONAL_FOR_TEST_H_

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace tiercel {

// An exact fraction. Stops the program on overflow of 64 bits, since a test
// must not pass by wrapping around.
class Rational {
 public:
  Rational(int64_t n = 0) : n_(n) {}  // NOLINT: 0 and 1 are numbers
  Rational(int64_t n, int64_t d) : Rational(Wide{n}, Wide{d}) {}

  friend Rational operator+(Rational a, Rational b) {
    return {Wide{a.n_} * b.d_ + Wide{b.n_} * a.d_, Wide{a.d_} * b.d_};
  }
  friend Rational operator-(Rational a, Rational b) {
    return {Wide{a.n_} * b.d_ - Wide{b.n_} * a.d_, Wide{a.d_} * b.d_};
  }
  friend Rational operator*(Rational a, Rational b) {
    return {Wide{a.n_} * b.n_, Wide{a.d_} * b.d_};
  }
  friend Rational operator/(Rational a, Rational b) {
    return {Wide{a.n_} * b.d_, Wide{a.d_} * b.n_};
  }
  friend bool operator<(Rational a, Rational b) {
    return Wide{a.n_} * b.d_ < Wide{b.n_} * a.d_;
  }
  friend bool operator==(Rational a, Rational b) {
    return a.n_ == b.n_ && a.d_ == b.d_;
  }
  double AsDouble() const {
    return static_cast<double>(n_) / static_cast<double>(d_);
  }

 private:
  __extension__ using Wide = __int128;

  Rational(Wide n, Wide d) {
    Wide a = n < 0 ? -n : n;
    Wide b = d < 0 ? -d : d;
    while (b != 0) a = std::exchange(b, a % b);
    if (d < 0) a = -a;
    n /= a;
    d /= a;
    if (n > INT64_MAX || n < -INT64_MAX || d > INT64_MAX) std::abort();
    n_ = static_cast<int64_t>(n);
    d_ = static_cast<int64_t>(d);
  }

  int64_t n_ = 0;
  int64_t d_ = 1;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_RATIONAL_FOR_TEST_H_

#ifndef TIERCEL_KERNELS_NUMBER_CODE_BOOK_H_
#define TIERCEL_KERNELS_NUMBER_CODE_BOOK_H_

#include <cstdint>

namespace tiercel {

// The 16 numbers that the 4-bit codes of a type stand for; a block's scale
// multiplies them.
struct CodeBook {
  int8_t of[16];
};

// IQ4_NL: numbers are closer around 0, as weights are.
inline constexpr CodeBook kNl4Book = {{-127, -104, -83, -65, -49, -35, -22,
                                       -10,  //
                                       1, 13, 25, 38, 53, 69, 89, 113}};

// MXFP4: the floats of 4 bits (a sign, two bits of exponent, one of mantissa),
// doubled; the sign of 0 is lost.
inline constexpr CodeBook kFp4Book = {{0, 1, 2, 3, 4, 6, 8, 12,  //
                                       0, -1, -2, -3, -4, -6, -8, -12}};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_CODE_BOOK_H_

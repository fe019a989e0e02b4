// Synthetic inputs: the same numbers for the same seed, of a kind that most models accept.
//
// Floating-point numbers are spread evenly over a range. Bytes (uint8) are anything from 0 to 255, as pixels
// are. Other integers and bool are 0 or 1: an index of every axis with two entries, a length, or a mask.
#pragma once

#include <cstdint>

#include "converter/ir/constant.h"

namespace sinter::convert {

class MadeUpInputs {
 public:
  // Where 0 or 1 at random do not suit: all integers, bytes too, are the same.
  enum class Integers { kVaried, kOnes, kZeros };
  explicit MadeUpInputs(Integers integers = Integers::kVaried, uint64_t seed = 1)
      : integers_(integers), state_(seed) {}
  // Throws DataError for types that cannot be made from float32.
  ConstantPtr next(DType dtype, const Dims& dims, double low, double high);

 private:
  double number();  // in [0, 1)
  Integers integers_;
  uint64_t state_;
};

}  // namespace sinter::convert

// The numbers of integer inputs and outputs: an integer q is the number (q - zero_point) * scale.
#pragma once

#include <string>

#include "converter/ir/constant.h"

namespace sinter::convert {

struct IntegerScale {
  double scale = 0;  // 0: an integer is itself
  int64_t zero_point = 0;
  bool operator==(const IntegerScale&) const = default;
};

// float32 numbers as int8, half to even and saturated. Throws DataError, with the input's name, for NaN, and
// where most numbers are so far outside the range that they must be of another scale.
ConstantPtr as_integers(const ConstantPtr& numbers, const IntegerScale& of, const std::string& input);

// The numbers of integers, in float32.
ConstantPtr as_numbers(const ConstantPtr& integers, const IntegerScale& of);

}  // namespace sinter::convert

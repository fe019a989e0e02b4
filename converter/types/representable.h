// Which values a type holds.
#pragma once

#include <optional>

#include "converter/ir/constant.h"
#include "runtime/core/dtype.h"

namespace sinter::convert {

// The type that values of t are computed in: integers of less than a byte count as int8 or uint8,
// floating-point numbers of 8 bits or less as float32. Every other type is its own.
DType computable(DType t);

// Does every element of a constant survive in `to`? Floating-point ones may round (once) unless `exact`; none
// may overflow, none of a magnitude where whole numbers matter (2^24 and above) may change, and a lone one
// may not vanish below float32's normal range.
bool survives(const Constant& constant, DType to, bool exact);

// The largest number of float16, bfloat16 or float32; infinity for other types.
double largest_number(DType t);

// The first element that is not a whole number, where floating-point numbers represent truth values.
std::optional<double> fraction_as_truth(const Constant& constant);

}  // namespace sinter::convert

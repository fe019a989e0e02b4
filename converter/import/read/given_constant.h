// Arrays and numbers given with --const, as the type that the model declares: .npy has no bfloat16, float8 or
// sub-byte types.
#pragma once

#include <string>

#include "converter/import/read/imported_graph.h"
#include "converter/ir/constant.h"

namespace sinter::convert {

// Returns whether a constant of --const is one number for all elements of its input.
inline bool is_number(const Constant& given) {
  return given.dtype() == DType::kFloat64 && given.dims().empty();
}

// Returns the array in the declared type: bfloat16 and float8 come as uint16 and uint8 bits or as float32,
// float4 as float32, 4- and 2-bit integers as int8 or uint8 numbers. A float64 without dimensions is a number
// for every element of the declared shape. Null where type or shape contradict the declaration; `problem` has
// the reason.
ConstantPtr given_constant(const ConstantPtr& array, const ImportedValueInfo& declared, std::string* problem);

}  // namespace sinter::convert

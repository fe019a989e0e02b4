// Arrays given with --const, as the type that the model declares: .npy has no bfloat16, float8 or sub-byte
// types.
#pragma once

#include <string>

#include "converter/import/read/imported_graph.h"
#include "converter/ir/constant.h"

namespace sinter::convert {

// The array in the declared type: bfloat16 and float8 come as uint16 and uint8 bits or as float32, float4 as
// float32, 4- and 2-bit integers as int8 or uint8 numbers. Null where type or shape contradict the
// declaration; `problem` has the reason.
ConstantPtr given_constant(const ConstantPtr& array, const ImportedValueInfo& declared, std::string* problem);

}  // namespace sinter::convert

// The names of the element types for code that needs them while compiling. All other code calls dtype_name().
#pragma once

#include "runtime/core/dtype.h"

namespace sinter {

inline constexpr const char* kDTypeNames[] = {
    "none",       "float32", "float64",      "float16",        "bfloat16",   "int8",
    "uint8",      "int16",   "uint16",       "int32",          "uint32",     "int64",
    "uint64",     "bool",    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float8e8m0", "int4",    "uint4",        "int2",           "uint2",      "float4e2m1"};
static_assert(sizeof(kDTypeNames) / sizeof(kDTypeNames[0]) == static_cast<size_t>(DType::kCount));

}  // namespace sinter

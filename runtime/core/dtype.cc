#include "runtime/core/dtype.h"

namespace sinter {

const char* dtype_name(DType t) {
  static constexpr const char* kNames[] = {
      "none",       "float32", "float64",      "float16",        "bfloat16",   "int8",
      "uint8",      "int16",   "uint16",       "int32",          "uint32",     "int64",
      "uint64",     "bool",    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "float8e8m0", "int4",    "uint4",        "int2",           "uint2",      "float4e2m1"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(DType::kCount));
  return t < DType::kCount ? kNames[static_cast<size_t>(t)] : "?";
}

}  // namespace sinter

#include "platforms/simd/move/cast.h"

#include <cstdint>
#include <type_traits>

#include "runtime/core/float_formats.h"

namespace sinter::simd {
namespace {

// Narrower integers keep the low bits.
template <class To, class From>
To convert_one(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_same_v<From, float> && !std::is_same_v<To, float>) {
    return saturate_to<To>(static_cast<double>(v));
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
void convert(const void* from, void* to, size_t n) {
  auto* y = static_cast<To*>(to);
  if constexpr (std::is_same_v<From, bool>) {
    const auto* x = static_cast<const uint8_t*>(from);
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i] != 0);
  } else {
    const auto* x = static_cast<const From*>(from);
    for (size_t i = 0; i < n; ++i) y[i] = convert_one<To>(x[i]);
  }
}

template <class From>
PlainCast cast_from(DType to) {
  switch (to) {
    case DType::kBool:
      return convert<From, bool>;
    case DType::kInt8:
      return convert<From, int8_t>;
    case DType::kUint8:
      return convert<From, uint8_t>;
    case DType::kInt32:
      return convert<From, int32_t>;
    case DType::kInt64:
      return convert<From, int64_t>;
    case DType::kFloat32:
      return convert<From, float>;
    default:
      return nullptr;
  }
}

}  // namespace

PlainCast plain_cast(DType from, DType to) {
  if (from == to) return nullptr;
  switch (from) {
    case DType::kBool:
      return cast_from<bool>(to);
    case DType::kInt8:
      return cast_from<int8_t>(to);
    case DType::kUint8:
      return cast_from<uint8_t>(to);
    case DType::kInt32:
      return cast_from<int32_t>(to);
    case DType::kInt64:
      return cast_from<int64_t>(to);
    case DType::kFloat32:
      return cast_from<float>(to);
    default:
      return nullptr;
  }
}

}  // namespace sinter::simd

// Elements whose type is an argument of the kernel, for kernels that are bound by memory. There the choice
// costs nothing, and one kernel serves several types.
#pragma once

#include <type_traits>

#include "platforms/cuda/grid/elements.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

template <class T>
SINTER_DEVICE T load_one(const std::byte* p) {
  return *reinterpret_cast<const T*>(p);
}

// Calls f(TypeOf<T>) for an integer type.
template <class F>
SINTER_DEVICE auto for_integer(DType type, F&& f) {
  switch (type) {
    case DType::kInt8:
      return f(TypeOf<int8_t>{});
    case DType::kUint8:
      return f(TypeOf<uint8_t>{});
    case DType::kInt16:
      return f(TypeOf<int16_t>{});
    case DType::kUint16:
      return f(TypeOf<uint16_t>{});
    case DType::kInt32:
      return f(TypeOf<int32_t>{});
    case DType::kUint32:
      return f(TypeOf<uint32_t>{});
    case DType::kInt64:
      return f(TypeOf<int64_t>{});
    default:
      return f(TypeOf<uint64_t>{});
  }
}

// Loads integers of any type as int64_t: unsigned ones of 64 bits keep their bits.
SINTER_DEVICE int64_t load_integer(const std::byte* p, DType t) {
  switch (t) {
    case DType::kInt8:
      return load_one<int8_t>(p);
    case DType::kUint8:
      return load_one<uint8_t>(p);
    case DType::kInt16:
      return load_one<int16_t>(p);
    case DType::kUint16:
      return load_one<uint16_t>(p);
    case DType::kInt32:
      return load_one<int32_t>(p);
    case DType::kUint32:
      return load_one<uint32_t>(p);
    case DType::kBool:
      return load_one<uint8_t>(p) != 0 ? 1 : 0;
    default:
      return load_one<int64_t>(p);
  }
}
// Stores the low bits of v.
SINTER_DEVICE void store_integer(std::byte* p, DType t, int64_t v) {
  switch (t) {
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
      *reinterpret_cast<uint8_t*>(p) = static_cast<uint8_t>(v);
      return;
    case DType::kInt16:
    case DType::kUint16:
      *reinterpret_cast<uint16_t*>(p) = static_cast<uint16_t>(v);
      return;
    case DType::kInt32:
    case DType::kUint32:
      *reinterpret_cast<uint32_t*>(p) = static_cast<uint32_t>(v);
      return;
    default:
      *reinterpret_cast<int64_t*>(p) = v;
  }
}

// Loads floats of type `t`: float64 if V is double, else one of the others. A warp goes on while elements are
// loaded, until it needs their values, so that several of them are loaded first.
template <class V>
using Loaded = std::conditional_t<std::is_same_v<V, double>, double, uint32_t>;
template <class V>
SINTER_DEVICE Loaded<V> begin_load(const std::byte* p, DType t) {
  if constexpr (std::is_same_v<V, double>)
    return load_one<double>(p);
  else
    return t == DType::kFloat32 ? load_one<uint32_t>(p) : load_one<uint16_t>(p);
}
template <class V>
SINTER_DEVICE V value_of(Loaded<V> v, DType t) {
  if constexpr (std::is_same_v<V, double>)
    return v;
  else
    return t == DType::kFloat16 ? widen(Float16{static_cast<uint16_t>(v)})
                                : float_of(t == DType::kFloat32 ? v : v << 16);
}
template <class V>
SINTER_DEVICE V load_float(const std::byte* p, DType t) {
  return value_of<V>(begin_load<V>(p, t), t);
}
template <class V>
SINTER_DEVICE void store_float(std::byte* p, DType t, V v) {
  if constexpr (std::is_same_v<V, double>) {
    *reinterpret_cast<double*>(p) = v;
  } else {
    switch (t) {
      case DType::kFloat16:
        return narrow(v, reinterpret_cast<Float16*>(p));
      case DType::kBFloat16:
        return narrow(v, reinterpret_cast<BFloat16*>(p));
      default:
        *reinterpret_cast<float*>(p) = v;
    }
  }
}

}  // namespace sinter::cuda

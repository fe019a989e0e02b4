// Weights of a product that are narrower floats than its other operands: float16, bfloat16 or float8. They
// are read as bits and are exact in the accumulator.
#pragma once

#include "runtime/core/narrow_weights.h"
#include "runtime/kernels/linear.h"

namespace sinter::linear {

// Returns an error unless weights of type `w` multiply values of type `x`: the same type, or narrower floats.
inline Status check_weight_dtype(DType x, DType w) {
  if (w == x) return ok_status();
  SINTER_RETURN_UNLESS(is_narrow_weight(w) && (x == DType::kFloat32 || x == DType::kFloat64),
                       invalid("weights of %A do not multiply values of %B", static_cast<int64_t>(w),
                               static_cast<int64_t>(x)));
  return ok_status();
}

// Returns the number that the bits stand for.
template <class Bits>
class NarrowReader {
 public:
  NarrowReader() = default;
  explicit NarrowReader(DType type) : type_(type) {}
  double operator()(Bits bits) const {
    if constexpr (sizeof(Bits) == 2) {
      return type_ == DType::kFloat16 ? decode_float<kFloat16Format>(bits) : double{bfloat16_value(bits)};
    } else {
      return float8_value(type_, bits);
    }
  }

 private:
  DType type_ = DType::kNone;
};

// The numerics of values of type T with weights of as many bits as `Bits` has.
template <class T, class Bits>
class NarrowWeights : public Direct<T> {
 public:
  using Weight = Bits;
  NarrowWeights(const OpCall& call, double min, double max)
      : Direct<T>(call, min, max), read_(call.in(1).dtype) {}
  NarrowReader<Bits> column_reader(int64_t /*column*/) const { return read_; }

 private:
  NarrowReader<Bits> read_;
};

// Calls f with the numerics of x, weights, bias? -> y.
template <class F>
Status for_weights(const OpCall& call, double min, double max, F&& f) {
  const DType x = call.in(0).dtype, w = call.in(1).dtype;
  if (w == x) return dispatch(x, [&](auto t) { return f(Direct<decltype(t)>(call, min, max)), ok_status(); });
  if (!is_built(w)) return dtype_not_computed(w);
  return for_float(x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_built_width(1))
      if (byte_width(w) == 1) return f(NarrowWeights<T, uint8_t>(call, min, max)), ok_status();
    if constexpr (is_built_width(2))
      if (byte_width(w) == 2) return f(NarrowWeights<T, uint16_t>(call, min, max)), ok_status();
    return dtype_not_computed(w);
  });
}

}  // namespace sinter::linear

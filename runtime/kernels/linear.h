// The common parts of Conv, FullyConnected, MatMul and similar ops: element types, the fused clamp, checks.
// The loops are in product.h.
#pragma once

#include <algorithm>
#include <type_traits>

#include "runtime/backend/kernel.h"
#include "runtime/kernels/support.h"

namespace sinter::linear {

// Floats are summed in double; integers wrap, which is defined for unsigned arithmetic only.
template <class T>
using Accumulator = std::conditional_t<kIsFloatElement<T>, double,
                                       std::make_unsigned_t<std::conditional_t<kIsFloatElement<T>, int, T>>>;

// Calls f with a value of the element type that `t` names.
template <class F>
Status dispatch(DType t, F&& f) {
  const auto of = [&](auto tag) { return f(typename decltype(tag)::type{}); };
  if (!is_integer(t)) return for_float_or_half(t, of);
  switch (t) {
    case DType::kInt32:
      return for_built<DType::kInt32, int32_t>(of);
    case DType::kInt64:
      return for_built<DType::kInt64, int64_t>(of);
    case DType::kUint32:
      return for_built<DType::kUint32, uint32_t>(of);
    case DType::kUint64:
      return for_built<DType::kUint64, uint64_t>(of);
    default:
      return dtype_not_computed(t);
  }
}

// Checks input 0 of a matrix product: a float, or an integer that dispatch() handles.
inline Status check_linear_dtype(const OpCall& call) {
  const DType t = call.in(0).dtype;
  return check_dtype(call, 0,
                     is_compute_float(t) || t == DType::kInt32 || t == DType::kInt64 || t == DType::kUint32 ||
                         t == DType::kUint64);
}

// The fused activation [min, max] in the element's own type.
template <class T>
class Bounds {
 public:
  Bounds(double min, double max) {
    using Limits = std::numeric_limits<T>;
    if constexpr (kIsFloatElement<T>) {
      low_ = min, high_ = max;
    } else {
      // An integer satisfies x >= min exactly if x >= ceil(min); bounds beyond the type do not bind.
      constexpr double kEnd = static_cast<double>(Limits::max() / 2 + 1) * 2;  // 2^bits, exact
      if (min >= kEnd)
        low_ = Limits::max();
      else if (min > static_cast<double>(Limits::min()))
        low_ = static_cast<T>(min), low_ += low_ < min;
      if (max < static_cast<double>(Limits::min()))
        high_ = Limits::min();
      else if (max < kEnd)
        high_ = static_cast<T>(max), high_ -= high_ > max;
    }
  }
  // NaN stays NaN.
  T operator()(Accumulator<T> value) const {
    if constexpr (kIsFloatElement<T>) {
      return static_cast<T>(value < low_ ? low_ : value > high_ ? high_ : value);
    } else {
      const T v = static_cast<T>(value);
      return v < low_ ? low_ : v > high_ ? high_ : v;
    }
  }

 private:
  using Bound = std::conditional_t<kIsFloatElement<T>, double, T>;
  Bound low_ = std::numeric_limits<Bound>::lowest();
  Bound high_ = std::numeric_limits<Bound>::max();
};

// The numerics by which the loops of this folder read operands and store sums. These are in the operands' own
// type; the other ones are Quantized (quantized_linear.h). `column` is an output channel.
template <class T>
class Direct {
 public:
  using Input = T;
  using Weight = T;
  using Acc = Accumulator<T>;
  using Kept = Computed<T>;
  struct Reader {
    template <class V>
    Acc operator()(V v) const {
      return static_cast<Acc>(v);
    }
  };
  // Sums are vectors of accumulators, in the order of the depth.
  static constexpr bool kDots = false;

  // The operands are x, weights, bias? -> y.
  Direct(const OpCall& call, double min, double max)
      : bias_(call.has_input(2) ? call.in(2).as<T>() : nullptr), y_(call.out(0).as<T>()), bounds_(min, max) {}
  // Return the value of the padding around an image, and readers of rows and of a column.
  T padding() const { return T(0); }
  Reader row_reader() const { return {}; }
  Reader column_reader(int64_t /*column*/) const { return {}; }
  void store(int64_t at, int64_t column, Acc sum) const {
    if (bias_ != nullptr) sum += static_cast<Acc>(bias_[column]);
    y_[at] = bounds_(sum);
  }

 private:
  const T* bias_;
  T* y_;
  Bounds<T> bounds_;
};

inline Status check_bounds(double min, double max) {
  SINTER_RETURN_UNLESS(min <= max, invalid("act_min is above act_max, or one of them is not a number"));
  return ok_status();
}

// Returns whether the bytes of a tensor of these dims fit int64 even if dims of 0 counted as 1: then no
// product of some of the dims overflows either.
inline Status check_dims(DType dtype, std::span<const int64_t> dims) {
  int64_t n = std::max(bit_width(dtype), 8);
  for (const int64_t d : dims)
    SINTER_RETURN_UNLESS(d >= 0 && checked_mul(n, std::max<int64_t>(d, 1), &n),
                         invalid("a tensor is too large"));
  return ok_status();
}
inline Status check_dims(const TensorView& t) { return check_dims(t.dtype, t.shape()); }

// Returns the sum of four interleaved partial sums.
template <class T>
double dot(const double* a, const T* b, int64_t n) {
  double s[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; ++j) s[j] += a[i + j] * static_cast<double>(b[i + j]);
  for (; i < n; ++i) s[0] += a[i] * static_cast<double>(b[i]);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// Checks the shapes of a fully connected layer's x [..., K] and weights [N, K].
inline Status check_connected(const OpCall& call) {
  const TensorView &x = call.in(0), &w = call.in(1);
  SINTER_RETURN_UNLESS(x.rank >= 1 && w.rank == 2,
                       invalid("x needs an axis and the weights two, not %a and %b", x.rank, w.rank));
  SINTER_RETURN_IF_ERROR(check_dims(x));
  SINTER_RETURN_IF_ERROR(check_dims(w));
  SINTER_RETURN_UNLESS(
      w.dims[1] == x.dims[x.rank - 1],
      invalid("the weights read %a values of each row of %b", w.dims[1], x.dims[x.rank - 1]));
  return ok_status();
}

struct Product {
  int64_t rows = 0, columns = 0, depth = 0;
};

// Describes the product of every row of x [..., depth] and every row of the weights [columns, depth].
inline Product connected_product(const OpCall& call) {
  const TensorView& x = call.in(0);
  Product p;
  p.rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) p.rows *= x.dims[i];
  p.depth = x.dims[x.rank - 1];
  p.columns = call.in(1).dims[0];
  return p;
}

}  // namespace sinter::linear

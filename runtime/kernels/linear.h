// What Conv, FullyConnected, MatMul and their kin share: element types, the fused clamp, and one blocked
// product.
//
// The product is rows x columns over a depth. Callers say how a row and a column are read (an image patch, a
// transposed matrix, ...), so that nothing is ever laid out twice in memory. Every result is summed by one
// thread in the order of the depth index, in an accumulator that is wider than the element, and rounded once.
#pragma once

#include <algorithm>
#include <type_traits>

#include "runtime/backend/kernel.h"
#include "runtime/kernels/support.h"

namespace sinter::linear {

// Floats sum in double; integers wrap, which only unsigned arithmetic does by definition.
template <class T>
using Accumulator = std::conditional_t<kIsFloatElement<T>, double,
                                       std::make_unsigned_t<std::conditional_t<kIsFloatElement<T>, int, T>>>;

// Calls f with a value of the element type that `t` names.
template <class F>
Status dispatch(DType t, F&& f) {
  switch (t) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kFloat16:
      return f(Half{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUint32:
      return f(uint32_t{});
    case DType::kUint64:
      return f(uint64_t{});
    default:
      return unsupported("the reference kernel does not compute in this type");
  }
}

// Input 0 of a matrix product: a float, or an integer that dispatch() knows.
inline Status check_linear_dtype(const OpCall& call) {
  const DType t = call.in(0).dtype;
  return check_dtype(call, 0,
                     is_compute_float(t) || t == DType::kInt32 || t == DType::kInt64 || t == DType::kUint32 ||
                         t == DType::kUint64);
}

// The fused activation: [min, max] in the element's own type.
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

// How the loops of this folder read operands and store sums; this one computes in the operands' own type. The
// other is Quantized (quantized_linear.h). `column` is an output channel.
template <class T>
class Direct {
 public:
  using Input = T;
  using Weight = T;
  using Acc = Accumulator<T>;

  // x, weights, bias? -> y
  Direct(const OpCall& call, double min, double max)
      : bias_(call.has_input(2) ? call.in(2).as<T>() : nullptr), y_(call.out(0).as<T>()), bounds_(min, max) {}
  static Acc input(T value) { return static_cast<Acc>(value); }
  static Acc weight(T value, int64_t /*column*/) { return static_cast<Acc>(value); }
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
  SINTER_CHECK(min <= max, invalid("act_min is above act_max, or one of them is not a number"));
  return ok_status();
}

// Whether the bytes of a tensor of these dims fit int64 even if dims of 0 counted as 1: then no product of
// some of the dims overflows either.
inline Status check_dims(DType dtype, std::span<const int64_t> dims) {
  int64_t n = std::max(bit_width(dtype), 8);
  for (const int64_t d : dims)
    SINTER_CHECK(d >= 0 && checked_mul(n, std::max<int64_t>(d, 1), &n), invalid("a tensor is too large"));
  return ok_status();
}
inline Status check_dims(const TensorView& t) { return check_dims(t.dtype, t.shape()); }

// Sum of four interleaved partial sums.
template <class T>
double dot(const double* a, const T* b, int64_t n) {
  double s[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; ++j) s[j] += a[i + j] * static_cast<double>(b[i + j]);
  for (; i < n; ++i) s[0] += a[i] * static_cast<double>(b[i]);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// The shapes of a fully connected layer's x [..., K] and weights [N, K].
inline Status check_connected(const OpCall& call) {
  const TensorView &x = call.in(0), &w = call.in(1);
  SINTER_CHECK(x.rank >= 1 && w.rank == 2,
               invalid("x needs an axis and the weights two, not %a and %b", x.rank, w.rank));
  SINTER_RETURN_IF_ERROR(check_dims(x));
  SINTER_RETURN_IF_ERROR(check_dims(w));
  SINTER_CHECK(w.dims[1] == x.dims[x.rank - 1],
               invalid("the weights read %a values of each row of %b", w.dims[1], x.dims[x.rank - 1]));
  return ok_status();
}

constexpr int64_t kTile = 4;              // rows and columns of a register tile
constexpr int64_t kPackedValues = 32768;  // of rows, at a time
constexpr int64_t kDepthBlock = 512;      // depth of the packed columns at a time

struct Product {
  int64_t rows = 0, columns = 0, depth = 0;
};

// Every row of x [..., depth] with every row of the weights [columns, depth], operands 0 and 1.
inline Product connected_product(const OpCall& call) {
  const TensorView& x = call.in(0);
  Product p;
  p.rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) p.rows *= x.dims[i];
  p.depth = x.dims[x.rank - 1];
  p.columns = call.in(1).dims[0];
  return p;
}

// Rows that are packed together: enough to make packing the columns cheap, few enough for a cache.
inline int64_t block_rows(const Product& p) {
  const int64_t fit = kPackedValues / std::max<int64_t>(p.depth, 1) / kTile * kTile;
  return std::clamp<int64_t>(std::min(fit, (p.rows + kTile - 1) / kTile * kTile), kTile, 64);
}

// Scratch of one thread, in bytes; false on overflow. Never less for more rows or a larger depth.
template <class Acc>
[[nodiscard]] bool product_scratch(const Product& p, size_t* bytes) {
  const int64_t rows = std::min<int64_t>((std::min<int64_t>(p.rows, 64) + kTile - 1) / kTile * kTile, 64);
  int64_t least = 0, all = 0;
  if (!checked_mul(kTile, p.depth, &least) || !checked_mul(rows, p.depth, &all)) return false;
  int64_t n = std::min(all, std::max<int64_t>(least, kPackedValues));
  if (!checked_add(n, kTile * kDepthBlock, &n) || !checked_mul<int64_t>(n, sizeof(Acc), &n) ||
      !checked_add<int64_t>(n, kBufferAlignment, &n))
    return false;
  *bytes = static_cast<size_t>(n) / kBufferAlignment * kBufferAlignment;
  return true;
}

// Scratch for `threads` threads.
template <class Acc>
Status product_workspace(const Product& p, int threads, size_t* bytes) {
  size_t each = 0;
  SINTER_CHECK(product_scratch<Acc>(p, &each) && checked_mul<size_t>(each, std::max(threads, 1), bytes),
               invalid("the operation needs more workspace than there is"));
  return ok_status();
}

// kRows x kTile results: acc[r][c] += sum over k of a[r][k] * b[k][c].
template <int kRows, class Acc>
inline void tile(const Acc* a, int64_t a_stride, const Acc* b, int64_t depth, Acc (*acc)[kTile]) {
  Acc sum[kRows][kTile];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kTile; ++c) sum[r][c] = acc[r][c];
  for (int64_t k = 0; k < depth; ++k) {
    for (int r = 0; r < kRows; ++r) {
      const Acc x = a[r * a_stride + k];
      for (int c = 0; c < kTile; ++c) sum[r][c] += x * b[k * kTile + c];
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kTile; ++c) acc[r][c] = sum[r][c];
}

// pack_row(row, dst): depth values of a row, contiguous.
// pack_column(column, k0, k1, dst): values k0 .. k1 - 1 of a column, kTile apart.
// store(row, column, value): takes a finished sum.
template <class Acc, class PackRow, class PackColumn, class Store>
void multiply(const Product& p, RunContext& context, PackRow&& pack_row, PackColumn&& pack_column,
              Store&& store) {
  size_t each = 0;
  if (p.rows <= 0 || p.columns <= 0 || !product_scratch<Acc>(p, &each) || context.workspace.size() < each)
    return;
  const int64_t threads = context.threads != nullptr ? context.threads->thread_count() : 1;
  const int64_t slots =
      std::clamp<int64_t>(threads, 1, static_cast<int64_t>(context.workspace.size() / each));
  const int64_t block = block_rows(p);
  const int64_t row_blocks = (p.rows + block - 1) / block, panels = (p.columns + kTile - 1) / kTile;
  // Where there are too few row blocks for the threads, columns are shared out as well.
  const int64_t groups = row_blocks >= slots ? 1 : std::min(panels, (slots + row_blocks - 1) / row_blocks);
  const int64_t units = row_blocks * groups, used = std::min(slots, units);

  const auto run_unit = [&](int64_t unit, Acc* rows, Acc* columns) {
    const int64_t row0 = unit / groups * block, row1 = std::min(row0 + block, p.rows);
    const int64_t group = unit % groups;
    const int64_t panel0 = panels * group / groups, panel1 = panels * (group + 1) / groups;
    for (int64_t r = row0; r < row1; ++r) pack_row(r, rows + (r - row0) * p.depth);
    Acc acc[64][kTile];
    for (int64_t panel = panel0; panel < panel1; ++panel) {
      const int64_t c0 = panel * kTile, c1 = std::min(c0 + kTile, p.columns);
      for (int64_t r = 0; r < row1 - row0; ++r)
        for (int64_t c = 0; c < kTile; ++c) acc[r][c] = 0;
      for (int64_t k0 = 0; k0 < p.depth; k0 += kDepthBlock) {
        const int64_t k1 = std::min(k0 + kDepthBlock, p.depth);
        for (int64_t c = c0; c < c0 + kTile; ++c) {
          if (c < c1)
            pack_column(c, k0, k1, columns + (c - c0));
          else
            for (int64_t k = 0; k < k1 - k0; ++k) columns[k * kTile + (c - c0)] = 0;
        }
        int64_t r = 0;
        for (; r + kTile <= row1 - row0; r += kTile)
          tile<kTile>(rows + r * p.depth + k0, p.depth, columns, k1 - k0, acc + r);
        for (; r < row1 - row0; ++r) tile<1>(rows + r * p.depth + k0, p.depth, columns, k1 - k0, acc + r);
      }
      for (int64_t r = row0; r < row1; ++r)
        for (int64_t c = c0; c < c1; ++c) store(r, c, acc[r - row0][c - c0]);
    }
  };
  parallel_for(context.threads, used, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      Acc* scratch = reinterpret_cast<Acc*>(context.workspace.data() + slot * static_cast<int64_t>(each));
      for (int64_t unit = units * slot / used; unit < units * (slot + 1) / used; ++unit)
        run_unit(unit, scratch + kTile * kDepthBlock, scratch);
    }
  });
}

// Every row of x [..., depth] with every row of the weights [columns, depth], operands 0 and 1.
template <class N>
void connect(const OpCall& call, const N& numerics, RunContext& context) {
  using Acc = typename N::Acc;
  const auto* x = call.in(0).as<typename N::Input>();
  const auto* w = call.in(1).as<typename N::Weight>();
  const Product p = connected_product(call);
  multiply<Acc>(
      p, context,
      [&](int64_t row, Acc* dst) {
        for (int64_t k = 0; k < p.depth; ++k) dst[k] = numerics.input(x[row * p.depth + k]);
      },
      [&](int64_t column, int64_t k0, int64_t k1, Acc* dst) {
        for (int64_t k = k0; k < k1; ++k, dst += kTile)
          *dst = numerics.weight(w[column * p.depth + k], column);
      },
      [&](int64_t row, int64_t column, Acc sum) { numerics.store(row * p.columns + column, column, sum); });
}

}  // namespace sinter::linear

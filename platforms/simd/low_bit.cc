// LowBitFullyConnected. Up to four rows of x: weights are read once and widened in registers; a block's sum
// is multiplied by its scale. More rows: one piece of a panel of weights after the other is widened into
// scratch, transposed as bytes, and goes through the product of gemm.h.
#include "platforms/simd/low_bit.h"

#include "platforms/simd/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using B = hn::Rebind<uint8_t, F>;

int64_t low_bit_lanes() { return static_cast<int64_t>(hn::Lanes(F())); }

// The zero point of a block, in the terms of unsigned weights.
HWY_INLINE float zero_of(const LowBit& g, int64_t at) {
  const float middle = !g.is_signed ? 0.0f : g.narrow ? 8.0f : 128.0f;
  if (g.zeros == nullptr) return middle;
  if (g.zero_type == DType::kFloat32) return reinterpret_cast<const float*>(g.zeros)[at];
  if (!g.narrow) {
    const auto byte = static_cast<uint8_t>(g.zeros[at]);
    return static_cast<float>(g.is_signed ? byte ^ 0x80 : byte);
  }
  const int nibble = (static_cast<int>(g.zeros[at / 2]) >> (at % 2 * 4)) & 15;
  return static_cast<float>(g.is_signed ? nibble ^ 8 : nibble);
}

// A vector of bytes as unsigned weights; those behind the last one read as zeros. `inside`: there are none.
HWY_INLINE VI load_bytes(const LowBit& g, const uint8_t* p, bool inside) {
  const B d;
  const int64_t left = g.end - p;
  const auto v = inside || left >= static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, p)
                 : left > 0 ? hn::LoadN(d, p, static_cast<size_t>(left))
                            : hn::Zero(d);
  const uint8_t flip = !g.is_signed ? 0 : g.narrow ? 0x88 : 0x80;
  return hn::PromoteTo(I(), hn::Xor(v, hn::Set(d, flip)));
}

// lo: even weights (4 bits) or all (8 bits); hi: odd weights.
template <bool kNarrow>
HWY_INLINE void widen_vector(VI v, V zero, V* lo, V* hi) {
  if constexpr (kNarrow) {
    *lo = hn::Sub(hn::ConvertTo(F(), hn::And(v, hn::Set(I(), 15))), zero);
    *hi = hn::Sub(hn::ConvertTo(F(), hn::ShiftRight<4>(v)), zero);
  } else {
    *lo = hn::Sub(hn::ConvertTo(F(), v), zero);
  }
}

template <bool kNarrow, int kRows>
HWY_NOINLINE void products(const LowBit& g, const float* arranged, int64_t stride, int64_t first,
                           int64_t last, const float* bias, float min, float max, float* y,
                           int64_t y_stride) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kEach = kNarrow ? 2 : 1;
  const int64_t chunks = g.chunks(lanes), block_bytes = g.block / kEach, row_bytes = g.depth / kEach;
  for (int64_t n = first; n < last; ++n) {
    const uint8_t* w = g.weights + n * row_bytes;
    const float* x = arranged;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t b = 0; b < g.blocks; ++b, w += block_bytes) {
      const int64_t at = n * g.blocks + b;
      const V zero = set(zero_of(g, at)), scale = set(g.scales[at]);
      V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      for (int64_t c = 0; c < chunks; ++c, x += kEach * lanes) {
        V lo, hi;
        widen_vector<kNarrow>(load_bytes(g, w + c * lanes, false), zero, &lo, &hi);
#define SINTER_ROW(r)                                                                         \
  if constexpr (kRows > r) {                                                                  \
    a##r = hn::MulAdd(lo, hn::LoadU(d, x + r * stride), a##r);                                \
    if constexpr (kNarrow) b##r = hn::MulAdd(hi, hn::LoadU(d, x + r * stride + lanes), b##r); \
  }
        SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3)
#undef SINTER_ROW
      }
#define SINTER_ROW(r) \
  if constexpr (kRows > r) s##r = hn::MulAdd(kNarrow ? hn::Add(a##r, b##r) : a##r, scale, s##r);
      SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3)
#undef SINTER_ROW
    }
    const auto finish = [&](int64_t r, float sum) {
      if (bias != nullptr) sum += bias[n];
      y[r * y_stride + n] = sum < min ? min : sum > max ? max : sum;
    };
    finish(0, hn::ReduceSum(d, s0));
    if constexpr (kRows > 1) finish(1, hn::ReduceSum(d, s1));
    if constexpr (kRows > 2) finish(2, hn::ReduceSum(d, s2));
    if constexpr (kRows > 3) finish(3, hn::ReduceSum(d, s3));
  }
}

// One row of x with four rows of weights at a time.
template <bool kNarrow>
HWY_NOINLINE void one_row(const LowBit& g, const float* arranged, int64_t first, int64_t last,
                          const float* bias, float min, float max, float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kEach = kNarrow ? 2 : 1;
  const int64_t chunks = g.chunks(lanes), block_bytes = g.block / kEach, row_bytes = g.depth / kEach;
  const V no_zero = set(zero_of({.zeros = nullptr, .narrow = g.narrow, .is_signed = g.is_signed}, 0));
  int64_t n = first;
  for (; n + 4 <= last; n += 4) {
    const uint8_t* w = g.weights + n * row_bytes;
    const float* x = arranged;
    // The last block may be read to the end of its last vector.
    const bool inside = g.end - (w + 4 * row_bytes) >= chunks * lanes;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t at = n * g.blocks;
    for (int64_t b = 0; b < g.blocks; ++b, ++at, w += block_bytes) {
      V z0 = no_zero, z1 = z0, z2 = z0, z3 = z0;
      if (g.zeros != nullptr)
        z0 = set(zero_of(g, at)), z1 = set(zero_of(g, at + g.blocks)),
        z2 = set(zero_of(g, at + 2 * g.blocks)), z3 = set(zero_of(g, at + 3 * g.blocks));
      V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
      for (int64_t c = 0; c < chunks; ++c, x += kEach * lanes) {
        const V even = hn::LoadU(d, x), odd = kNarrow ? hn::LoadU(d, x + lanes) : even;
        V lo, hi;
#define SINTER_COLUMN(i)                                                                       \
  widen_vector<kNarrow>(load_bytes(g, w + i * row_bytes + c * lanes, inside), z##i, &lo, &hi); \
  a##i = hn::MulAdd(lo, even, a##i);                                                           \
  if constexpr (kNarrow) a##i = hn::MulAdd(hi, odd, a##i);
        SINTER_COLUMN(0) SINTER_COLUMN(1) SINTER_COLUMN(2) SINTER_COLUMN(3)
#undef SINTER_COLUMN
      }
      s0 = hn::MulAdd(a0, set(g.scales[at]), s0);
      s1 = hn::MulAdd(a1, set(g.scales[at + g.blocks]), s1);
      s2 = hn::MulAdd(a2, set(g.scales[at + 2 * g.blocks]), s2);
      s3 = hn::MulAdd(a3, set(g.scales[at + 3 * g.blocks]), s3);
    }
    const auto finish = [&](int64_t i, float sum) {
      if (bias != nullptr) sum += bias[n + i];
      y[n + i] = sum < min ? min : sum > max ? max : sum;
    };
    finish(0, hn::ReduceSum(d, s0)), finish(1, hn::ReduceSum(d, s1));
    finish(2, hn::ReduceSum(d, s2)), finish(3, hn::ReduceSum(d, s3));
  }
  products<kNarrow, 1>(g, arranged, 0, n, last, bias, min, max, y, 0);
}

template <bool kNarrow>
HWY_INLINE void products_of(const LowBit& g, const float* arranged, int64_t stride, int64_t rows,
                            int64_t first, int64_t last, const float* bias, float min, float max, float* y,
                            int64_t y_stride) {
  switch (rows) {
    case 1:
      return one_row<kNarrow>(g, arranged, first, last, bias, min, max, y);
    case 2:
      return products<kNarrow, 2>(g, arranged, stride, first, last, bias, min, max, y, y_stride);
    case 3:
      return products<kNarrow, 3>(g, arranged, stride, first, last, bias, min, max, y, y_stride);
    default:
      return products<kNarrow, 4>(g, arranged, stride, first, last, bias, min, max, y, y_stride);
  }
}

void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride) {
  if (g.narrow)
    products_of<true>(g, arranged, stride, rows, first, last, bias, min, max, y, y_stride);
  else
    products_of<false>(g, arranged, stride, rows, first, last, bias, min, max, y, y_stride);
}

constexpr int64_t kSquare = 16;  // bytes of as many columns that are transposed at a time

// Bytes of kSquare columns to columns of bytes: four perfect shuffles. `from` is overwritten.
HWY_INLINE void transpose_bytes(uint8_t* from, uint8_t* to) {
  const hn::FixedTag<uint8_t, kSquare> d;
  constexpr int64_t kHalf = kSquare / 2;
  for (int stage = 0; stage < 4; ++stage) {
    for (int64_t i = 0; i < kHalf; ++i) {
      const auto a = hn::Load(d, from + i * kSquare), b = hn::Load(d, from + (i + kHalf) * kSquare);
      hn::Store(hn::InterleaveLower(d, a, b), d, to + 2 * i * kSquare);
      hn::Store(hn::InterleaveUpper(d, a, b), d, to + (2 * i + 1) * kSquare);
    }
    uint8_t* swap = from;
    from = to, to = swap;
  }
}

template <bool kNarrow>
HWY_NOINLINE void widen_square(const LowBit& g, int64_t column, int64_t count, int64_t k0, int64_t k1,
                               float* to, int64_t width) {
  const F d;
  const B bytes;
  const hn::FixedTag<uint8_t, kSquare> q;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kEach = kNarrow ? 2 : 1;
  const int64_t row_bytes = g.depth / kEach;
  const int64_t valid = g.columns - column < count ? g.columns - column : count;
  const auto flip = hn::Set(bytes, static_cast<uint8_t>(!g.is_signed ? 0 : kNarrow ? 0x88 : 0x80));
  HWY_ALIGN float zeros[kSquare] = {}, scales[kSquare] = {};  // beyond the last column: weights of 0
  HWY_ALIGN uint8_t square[kSquare * kSquare] = {}, turned[kSquare * kSquare];
  for (int64_t k = k0; k < k1;) {
    const int64_t block = k / g.block;
    const int64_t end = (block + 1) * g.block < k1 ? (block + 1) * g.block : k1;
    for (int64_t i = 0; i < valid; ++i) {
      const int64_t at = (column + i) * g.blocks + block;
      zeros[i] = zero_of(g, at), scales[i] = g.scales[at];
    }
    for (; k < end; k += kSquare * kEach) {
      for (int64_t i = 0; i < kSquare; ++i) {
        const uint8_t* p = g.weights + (column + i) * row_bytes + k / kEach;
        const int64_t left = i < valid ? g.end - p : 0;
        hn::Store(left >= kSquare ? hn::LoadU(q, p)
                  : left > 0      ? hn::LoadN(q, p, static_cast<size_t>(left))
                                  : hn::Zero(q),
                  q, square + i * kSquare);
      }
      transpose_bytes(square, turned);
      const int64_t n = end - k < kSquare * kEach ? end - k : kSquare * kEach;
      for (int64_t i = 0; i < n; i += kEach) {
        float* row = to + (k - k0 + i) * width;
        for (int64_t l = 0; l < count; l += lanes) {
          const auto v = hn::Xor(hn::LoadU(bytes, square + i / kEach * kSquare + l), flip);
          const V s = hn::Load(d, scales + l);
          V lo, hi;
          widen_vector<kNarrow>(hn::PromoteTo(I(), v), hn::Load(d, zeros + l), &lo, &hi);
          hn::StoreU(hn::Mul(lo, s), d, row + l);
          if constexpr (kNarrow) hn::StoreU(hn::Mul(hi, s), d, row + width + l);
        }
      }
    }
    k = end;
  }
}

void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to) {
  const auto width = static_cast<int64_t>(2 * hn::Lanes(F()));
  for (int64_t i = 0; i < width; i += kSquare) {
    const int64_t count = width - i < kSquare ? width - i : kSquare;
    if (g.narrow)
      widen_square<true>(g, column + i, count, k0, k1, to + i, width);
    else
      widen_square<false>(g, column + i, count, k0, k1, to + i, width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(low_bit_lanes);
HWY_EXPORT(low_bit_products);
HWY_EXPORT(widen_panel);

int64_t low_bit_lanes() { return HWY_DYNAMIC_DISPATCH(low_bit_lanes)(); }
void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride) {
  HWY_DYNAMIC_DISPATCH(low_bit_products)
  (g, arranged, stride, rows, first, last, bias, min, max, y, y_stride);
}
void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_panel)(g, column, k0, k1, to);
}

bool arranged_floats(const LowBit& g, int64_t* floats) {
  int64_t n = 0;
  return checked_mul(g.chunks(kMostLanes), kMostLanes * g.weights_a_byte(), &n) &&
         checked_mul(n, g.blocks, floats);
}

void arrange_row(const LowBit& g, const float* x, float* arranged) {
  const int64_t lanes = low_bit_lanes(), each = g.weights_a_byte(), chunks = g.chunks(lanes);
  float* to = arranged;
  for (int64_t b = 0; b < g.blocks; ++b) {
    const int64_t k1 = std::min((b + 1) * g.block, g.depth);
    int64_t k = b * g.block;
    for (int64_t c = 0; c < chunks; ++c, k += each * lanes)
      for (int64_t e = 0; e < each; ++e, to += lanes)
        for (int64_t i = 0; i < lanes; ++i) to[i] = k + each * i + e < k1 ? x[k + each * i + e] : 0.0f;
  }
}

namespace {

constexpr int64_t kPieceFloats = kMaxPanel * kDepthPiece;

LowBit low_bit(const OpCall& call) {
  const TensorView &w = call.in(1), &scales = call.in(2);
  LowBit g;
  g.weights = w.as<const uint8_t>();
  g.narrow = w.dtype == DType::kUint4 || w.dtype == DType::kInt4;
  g.is_signed = w.dtype == DType::kInt4 || w.dtype == DType::kInt8;
  g.columns = w.dims[0], g.depth = w.dims[1], g.blocks = scales.dims[1];
  // One block is as long as the row, whatever the attribute is.
  g.block = std::min(call.attrs<LowBitFullyConnectedAttrs>().block_size, std::max<int64_t>(g.depth, 2));
  if (g.weights != nullptr) g.end = g.weights + w.dense_bytes();
  g.scales = scales.as<const float>();
  if (call.has_input(3)) g.zeros = call.in(3).data, g.zero_type = call.in(3).dtype;
  return g;
}

int64_t rows_of(const TensorView& x) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  return rows;
}

Status accept_low_bit(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_float_dense(call.in(0)));
  SINTER_RETURN_IF_ERROR(check_float_dense(call.in(2)));
  SINTER_RETURN_IF_ERROR(check_float_dense(call.out(0)));
  if (call.has_input(4)) SINTER_RETURN_IF_ERROR(check_float_dense(call.in(4)));
  const LowBit g = low_bit(call);
  SINTER_RETURN_UNLESS(!g.narrow || (g.depth % 2 == 0 && g.block % 2 == 0),
                       unsupported("rows and blocks of 4-bit weights begin at whole bytes only"));
  return ok_status();
}

// Floats of scratch: of one thread, or for few rows of all.
bool scratch_floats(const LowBit& g, int64_t rows, int64_t* floats) {
  if (rows <= kLowBitRows) return arranged_floats(g, floats) && checked_mul(*floats, rows, floats);
  return *floats = kPieceFloats, true;
}

Status low_bit_workspace(const OpCall& call, int threads, size_t* bytes) {
  const LowBit g = low_bit(call);
  const int64_t rows = rows_of(call.in(0));
  int64_t n = 0;
  SINTER_RETURN_UNLESS(scratch_floats(g, rows, &n) &&
                           checked_mul<int64_t>(n, rows <= kLowBitRows ? 1 : std::max(threads, 1), &n) &&
                           checked_mul<int64_t>(n, sizeof(float), &n),
                       too_much_workspace());
  *bytes = static_cast<size_t>(n);
  return ok_status();
}

void run_many_rows(const LowBit& g, const Gemm& product, RunContext& context) {
  const int64_t pool = threads_of(context.threads);
  const auto room = static_cast<int64_t>(context.workspace.size() / sizeof(float)) / kPieceFloats;
  const int64_t slots = std::clamp<int64_t>(pool, 1, std::max<int64_t>(room, 1));
  const int64_t width = panel_width(), panels = divide_up(g.columns, width);
  parallel_slots(context.threads, slots, panels, [&](int64_t slot, int64_t begin, int64_t end) {
    float* piece = reinterpret_cast<float*>(context.workspace.data()) + slot * kPieceFloats;
    for (int64_t panel = begin; panel < end; ++panel)
      for (int64_t k0 = 0; k0 == 0 || k0 < g.depth; k0 += kDepthPiece) {
        widen_panel(g, panel * width, k0, std::min(k0 + kDepthPiece, g.depth), piece);
        gemm_piece(product, panel * width, k0, piece);
      }
  });
}

Status run_low_bit(const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<LowBitFullyConnectedAttrs>();
  const LowBit g = low_bit(call);
  const int64_t rows = rows_of(call.in(0));
  if (rows * g.columns == 0) return ok_status();
  const auto* x = call.in(0).as<const float>();
  const float* bias = call.has_input(4) ? call.in(4).as<const float>() : nullptr;
  auto* y = call.out(0).as<float>();
  const auto min = static_cast<float>(attrs.act_min), max = static_cast<float>(attrs.act_max);
  if (rows > kLowBitRows) {
    Gemm product;
    product.a = x, product.a_stride = g.depth, product.rows = rows, product.columns = g.columns;
    product.depth = g.depth, product.bias = bias, product.y = y, product.y_stride = g.columns;
    product.min = min, product.max = max;
    return run_many_rows(g, product, context), ok_status();
  }
  int64_t stride = 0;
  if (!arranged_floats(g, &stride)) return ok_status();
  auto* arranged = reinterpret_cast<float*>(context.workspace.data());
  for (int64_t r = 0; r < rows; ++r) arrange_row(g, x + r * g.depth, arranged + r * stride);
  const int64_t grain = std::max<int64_t>(65536 / std::max<int64_t>(g.depth, 1), 1);
  parallel_for(context.threads, g.columns, grain, [&](int64_t first, int64_t last) {
    low_bit_products(g, arranged, stride, rows, first, last, bias, min, max, y, g.columns);
  });
  return ok_status();
}

}  // namespace

const Kernel kLowBitFullyConnectedKernel = {Op::kLowBitFullyConnected, nullptr, low_bit_workspace,
                                            run_low_bit, accept_low_bit};

}  // namespace sinter::simd
#endif  // HWY_ONCE

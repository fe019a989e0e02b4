// Quantize and Dequantize of dense tensors, per tensor and per axis, and DynamicQuantize: the bits of the
// reference kernels.
//
// Axes are merged to [outer, channels, inner]. Where `inner` is long a row has one scale; else scales and
// zero points are written out for a stretch of elements that repeats, and whole stretches are computed.
#include <algorithm>
#include <type_traits>

#include "platforms/simd/int8/int8.h"
#include "runtime/backend/dynamic_range.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/quantize.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_QUANTIZE_ONCE
#define SINTER_SIMD_QUANTIZE_ONCE
namespace sinter::simd {

// Scale and zero point of a piece: the arrays where given (one per element), else the numbers.
struct Steps {
  const float* scales = nullptr;
  const int32_t* zeros = nullptr;
  float scale = 0;
  int32_t zero = 0;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using DI = D32;
using VI = V32;

// Beyond this every quotient saturates, whatever the zero point; up to it, rounding and the sum are exact.
constexpr float kBeyond = 1 << 20;

// rne(x / scale) + zero, bounded; NaN is the zero point.
HWY_INLINE VI quantized(VF x, VF scale, VI zero) {
  const DF d;
  VF q = rounded_quotient(x, scale);
  q = hn::IfThenElseZero(hn::Eq(q, q), q);
  q = hn::Min(hn::Max(q, hn::Set(d, -kBeyond)), hn::Set(d, kBeyond));
  return hn::Add(nearest(q), zero);
}

// Quotients by the reciprocal, bounded by kBeyondBytes: within 2^-13 of x / scale where neither it nor the
// scale is extreme, so that both round alike unless a half is that near.
constexpr float kBeyondBytes = 512;
constexpr float kNearHalf = 0.5f - 0x1p-12f;
inline bool has_reciprocal(float scale) {
  const float size = scale < 0 ? -scale : scale;
  return size >= 0x1p-100f && size <= 0x1p100f;
}
// rne of such a quotient; *distance: from it to the quotient.
HWY_INLINE VI rounded(VF x, VF reciprocal, VF* distance) {
  const DF d;
  VF q = hn::Mul(x, reciprocal);
  q = hn::IfThenElseZero(hn::Eq(q, q), q);
  q = hn::Min(hn::Max(q, hn::Set(d, -kBeyondBytes)), hn::Set(d, kBeyondBytes));
  const VI integer = nearest(q);
  *distance = hn::Abs(hn::Sub(q, hn::ConvertTo(d, integer)));
  return integer;
}

HWY_INLINE VF floats(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE VF floats(const int32_t* p) { return hn::ConvertTo(DF(), hn::LoadU(DI(), p)); }
HWY_INLINE VF floats(const float* p, size_t n) { return hn::LoadN(DF(), p, n); }
HWY_INLINE VF floats(const int32_t* p, size_t n) { return hn::ConvertTo(DF(), hn::LoadN(DI(), p, n)); }

#if HWY_ARCH_ARM_A64
// The bytes of sixteen such quotients; false where one may be too near a half. Conversion saturates and gives
// 0 for NaN, so nothing is bounded.
template <class X>
HWY_INLINE bool sixteen_rounded(const X* x, VF reciprocal, VF near, VI zero, int8_t* y) {
  const auto round = [&](const X* four, float32x4_t& distance) SINTER_SIMD_LAMBDA {
    const float32x4_t q = vmulq_f32(floats(four).raw, reciprocal.raw);
    const int32x4_t r = vcvtnq_s32_f32(q);
    distance = vabdq_f32(q, vcvtq_f32_s32(r));
    return r;
  };
  float32x4_t d0, d1, d2, d3;
  const int32x4_t r0 = round(x, d0), r1 = round(x + 4, d1), r2 = round(x + 8, d2), r3 = round(x + 12, d3);
  const float32x4_t most = vmaxq_f32(vmaxq_f32(d0, d1), vmaxq_f32(d2, d3));
  if (HWY_UNLIKELY(!(vmaxvq_f32(most) < vgetq_lane_f32(near.raw, 0)))) return false;
  const int16x8_t z = vqmovn_high_s32(vqmovn_s32(zero.raw), zero.raw);
  const int16x8_t a = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(r0), r1), z),
                  b = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(r2), r3), z);
  vst1q_s8(y, vqmovn_high_s16(vqmovn_s16(a), b));
  return true;
}
#endif

// Four vectors narrow to one (bytes) or two; demotion saturates, once or twice alike.
template <class T>
HWY_INLINE void store4(VI a, VI b, VI c, VI e, T* y) {
  const hn::ScalableTag<T> d;
  if constexpr (sizeof(T) == 1) {
    const hn::ScalableTag<int16_t> h;
    hn::StoreU(hn::OrderedDemote2To(d, hn::OrderedDemote2To(h, a, b), hn::OrderedDemote2To(h, c, e)), d, y);
  } else {
    hn::StoreU(hn::OrderedDemote2To(d, a, b), d, y);
    hn::StoreU(hn::OrderedDemote2To(d, c, e), d, y + hn::Lanes(d));
  }
}

template <bool kEach, class X, class T>
HWY_INLINE void quantize_piece(const X* x, T* y, size_t n, const Steps& steps) {
  const DI di;
  const DF df;
  const hn::Rebind<T, DI> narrow;
  const size_t lanes = hn::Lanes(di);
  const VF one_scale = hn::Set(df, steps.scale);
  const VI one_zero = hn::Set(di, steps.zero);
  const auto at = [&](size_t i) SINTER_SIMD_LAMBDA {
    if constexpr (kEach)
      return quantized(floats(x + i), hn::LoadU(df, steps.scales + i), hn::LoadU(di, steps.zeros + i));
    else
      return quantized(floats(x + i), one_scale, one_zero);
  };
  size_t i = 0;
  if constexpr (!kEach && sizeof(T) == 1) {
    if (has_reciprocal(steps.scale)) {
      const VF reciprocal = hn::Set(df, 1 / steps.scale), near = hn::Set(df, kNearHalf);
      for (; i + 4 * lanes <= n; i += 4 * lanes) {
#if HWY_ARCH_ARM_A64
        if constexpr (std::is_same_v<T, int8_t>) {
          if (!sixteen_rounded(x + i, reciprocal, near, one_zero, y + i))
            store4(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes), y + i);
          continue;
        }
#endif
        VF s, t, u, v;
        const VI a = rounded(floats(x + i), reciprocal, &s),
                 b = rounded(floats(x + i + lanes), reciprocal, &t),
                 c = rounded(floats(x + i + 2 * lanes), reciprocal, &u),
                 e = rounded(floats(x + i + 3 * lanes), reciprocal, &v);
        if (HWY_LIKELY(hn::AllTrue(df, hn::Lt(hn::Max(hn::Max(s, t), hn::Max(u, v)), near))))
          store4(hn::Add(a, one_zero), hn::Add(b, one_zero), hn::Add(c, one_zero), hn::Add(e, one_zero),
                 y + i);
        else
          store4(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes), y + i);
      }
    }
  }
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    store4(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes), y + i);
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::DemoteTo(narrow, at(i)), narrow, y + i);
  if (i == n) return;
  const size_t rest = n - i;
  VF scale = one_scale;
  VI zero = one_zero;
  if constexpr (kEach)
    scale = hn::LoadN(df, steps.scales + i, rest), zero = hn::LoadN(di, steps.zeros + i, rest);
  hn::StoreN(hn::DemoteTo(narrow, quantized(floats(x + i, rest), scale, zero)), narrow, y + i, rest);
}

HWY_INLINE VI integers(const int32_t* p) { return hn::LoadU(DI(), p); }
HWY_INLINE VI integers(const int32_t* p, size_t n) { return hn::LoadN(DI(), p, n); }
template <class T>
HWY_INLINE VI integers(const T* p) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<T, DI>(), p));
}
template <class T>
HWY_INLINE VI integers(const T* p, size_t n) {
  return hn::PromoteTo(DI(), hn::LoadN(hn::Rebind<T, DI>(), p, n));
}

template <bool kEach, class T>
HWY_INLINE void dequantize_piece(const T* x, float* y, size_t n, const Steps& steps) {
  const DI di;
  const DF df;
  const size_t lanes = hn::Lanes(di);
  const VF one_scale = hn::Set(df, steps.scale);
  const VI one_zero = hn::Set(di, steps.zero);
  const auto product = [](VI v, VF scale, VI zero) SINTER_SIMD_LAMBDA {
    return hn::Mul(hn::ConvertTo(DF(), hn::Sub(v, zero)), scale);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if constexpr (kEach)
      hn::StoreU(product(integers(x + i), hn::LoadU(df, steps.scales + i), hn::LoadU(di, steps.zeros + i)),
                 df, y + i);
    else
      hn::StoreU(product(integers(x + i), one_scale, one_zero), df, y + i);
  }
  if (i == n) return;
  const size_t rest = n - i;
  VF scale = one_scale;
  VI zero = one_zero;
  if constexpr (kEach)
    scale = hn::LoadN(df, steps.scales + i, rest), zero = hn::LoadN(di, steps.zeros + i, rest);
  hn::StoreN(product(integers(x + i, rest), scale, zero), df, y + i, rest);
}

// One piece; `x` and `y` have the given types.
template <class X, class T>
void quantize_as(const void* x, void* y, size_t n, const Steps& steps) {
  if (steps.scales != nullptr)
    quantize_piece<true>(static_cast<const X*>(x), static_cast<T*>(y), n, steps);
  else
    quantize_piece<false>(static_cast<const X*>(x), static_cast<T*>(y), n, steps);
}
template <class T>
void dequantize_as(const void* x, void* y, size_t n, const Steps& steps) {
  if (steps.scales != nullptr)
    dequantize_piece<true>(static_cast<const T*>(x), static_cast<float*>(y), n, steps);
  else
    dequantize_piece<false>(static_cast<const T*>(x), static_cast<float*>(y), n, steps);
}

template <class X>
void quantize_from(DType to, const void* x, void* y, size_t n, const Steps& steps) {
  switch (to) {
    case DType::kInt8:
      return quantize_as<X, int8_t>(x, y, n, steps);
    case DType::kUint8:
      return quantize_as<X, uint8_t>(x, y, n, steps);
    case DType::kInt16:
      return quantize_as<X, int16_t>(x, y, n, steps);
    default:
      return quantize_as<X, uint16_t>(x, y, n, steps);
  }
}
// Widens the range to hold n numbers; NaN changes nothing.
void widen_range(const float* x, size_t n, float* low, float* high) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF low0 = hn::Set(d, *low), high0 = hn::Set(d, *high), low1 = low0, high1 = high0;
  const auto widen = [](VF v, VF& least, VF& most) SINTER_SIMD_LAMBDA {
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  };
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    widen(hn::LoadU(d, x + i), low0, high0);
    widen(hn::LoadU(d, x + i + lanes), low1, high1);
  }
  for (; i < n; i += lanes) widen(hn::LoadN(d, x + i, n - i < lanes ? n - i : lanes), low0, high0);
  *low = hn::ReduceMin(d, hn::Min(low0, low1));
  *high = hn::ReduceMax(d, hn::Max(high0, high1));
}

void run_piece(DType from, DType to, const void* x, void* y, size_t n, const Steps& steps) {
  if (to != DType::kFloat32) {
    return from == DType::kFloat32 ? quantize_from<float>(to, x, y, n, steps)
                                   : quantize_from<int32_t>(to, x, y, n, steps);
  }
  switch (from) {
    case DType::kInt8:
      return dequantize_as<int8_t>(x, y, n, steps);
    case DType::kUint8:
      return dequantize_as<uint8_t>(x, y, n, steps);
    case DType::kInt16:
      return dequantize_as<int16_t>(x, y, n, steps);
    case DType::kUint16:
      return dequantize_as<uint16_t>(x, y, n, steps);
    default:
      return dequantize_as<int32_t>(x, y, n, steps);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(run_piece);
HWY_EXPORT(widen_range);

constexpr bool is_quantized(DType t) { return t >= DType::kInt8 && t <= DType::kUint16; }

int32_t zero_at(const TensorView& zero, int64_t i) {
  if (!zero.present()) return 0;
  switch (zero.dtype) {
    case DType::kInt8:
      return zero.as<const int8_t>()[i];
    case DType::kUint8:
      return zero.as<const uint8_t>()[i];
    case DType::kInt16:
      return zero.as<const int16_t>()[i];
    case DType::kUint16:
      return zero.as<const uint16_t>()[i];
    default:
      return 0;  // of int32: accept() has seen that they are zero
  }
}

constexpr int64_t kQuantizePiece = 8192;  // elements that outweigh handing a piece to a thread
constexpr int64_t kStretch = 896;         // 4-byte parameters that are written out together, on the stack
constexpr int64_t kLongRow = 64;          // elements from which a row is worth a call of its own

// axis: of the parameters, if they are not single.
Status run_steps(const OpCall& call, RunContext& context, int64_t axis) {
  const TensorView &x = call.in(0), &y = call.out(0), &scale = call.in(1);
  const TensorView zero = call.has_input(2) ? call.in(2) : TensorView{};
  const int64_t size = y.size();
  if (size == 0) return ok_status();
  const auto run = HWY_DYNAMIC_POINTER(run_piece);
  const auto piece = [&](int64_t at, int64_t count, const Steps& steps) {
    run(x.dtype, y.dtype, x.data + at * static_cast<int64_t>(byte_width(x.dtype)),
        y.data + at * static_cast<int64_t>(byte_width(y.dtype)), static_cast<size_t>(count), steps);
  };
  const auto* scales = scale.as<const float>();
  if (scale.size() == 1) {
    const Steps steps{nullptr, nullptr, scales[0], zero_at(zero, 0)};
    parallel_for(context.threads, size, kQuantizePiece,
                 [&](int64_t begin, int64_t end) { piece(begin, end - begin, steps); });
    return ok_status();
  }
  const int64_t channels = x.dims[axis];
  int64_t inner = 1;
  for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) inner *= x.dims[i];
  if (inner >= kLongRow) {
    const int64_t count = std::min(inner, kQuantizePiece), pieces = divide_up(inner, count);
    parallel_for(context.threads, size / inner * pieces, std::max<int64_t>(kQuantizePiece / count, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit) {
                     const int64_t row = unit / pieces, first = unit % pieces * count, c = row % channels;
                     piece(row * inner + first, std::min(count, inner - first),
                           {nullptr, nullptr, scales[c], zero_at(zero, c)});
                   }
                 });
    return ok_status();
  }
  // Several whole periods of parameters at once, or parts of one: units of one part go together. The scales
  // of many channels are read where they are.
  const int64_t period = channels * inner;
  const bool in_place = inner == 1 && period > kStretch / 2;
  const int64_t stretch = in_place ? kStretch : kStretch / 2;
  const int64_t copies = std::max<int64_t>(stretch / period, 1);
  const int64_t parts = divide_up(period, stretch), rows = divide_up(size, copies * period);
  parallel_for(context.threads, parts * rows, kQuantizePiece / stretch, [&](int64_t begin, int64_t end) {
    alignas(64) std::byte room[kStretch * sizeof(int32_t)];
    auto* stretch_zeros = reinterpret_cast<int32_t*>(room);
    auto* stretch_scales = reinterpret_cast<float*>(room) + kStretch / 2;
    int64_t filled = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t part = unit / rows, row = unit % rows, first = part * stretch;
      const int64_t count = parts > 1 ? std::min(stretch, period - first) : copies * period;
      if (part != filled) {
        int64_t c = first / inner, within = first % inner;
        for (int64_t i = 0; i < count; ++i) {
          if (!in_place) stretch_scales[i] = scales[c];
          stretch_zeros[i] = zero_at(zero, c);
          if (++within == inner) within = 0, c = c + 1 == channels ? 0 : c + 1;
        }
        filled = part;
      }
      const int64_t at = row * copies * period + first;
      piece(at, std::min(count, size - at),
            {in_place ? scales + first : stretch_scales, stretch_zeros, 0, 0});
    }
  });
  return ok_status();
}

Status accept_steps(const OpCall& call, DType from, DType to, int64_t block_size) {
  const TensorView &x = call.in(0), &y = call.out(0), &scale = call.in(1);
  SINTER_RETURN_UNLESS(from == DType::kFloat32 || from == DType::kInt32 || is_quantized(from),
                       unsupported("the simd kernel does not convert from this element type"));
  SINTER_RETURN_UNLESS(to == DType::kFloat32 || is_quantized(to),
                       unsupported("the simd kernel does not convert to this element type"));
  SINTER_RETURN_UNLESS(scale.dtype == DType::kFloat32, unsupported("the simd kernel takes float32 scales"));
  SINTER_RETURN_UNLESS(block_size == 0 || scale.rank == 0, unsupported("the simd kernel takes no blocks"));
  SINTER_RETURN_UNLESS(x.dense() && y.dense() && scale.dense(),
                       unsupported("the simd kernel takes dense operands"));
  if (!call.has_input(2)) return ok_status();
  const TensorView& zero = call.in(2);
  SINTER_RETURN_UNLESS(zero.dense(), unsupported("the simd kernel takes dense operands"));
  if (zero.dtype != DType::kInt32) return ok_status();
  SINTER_RETURN_UNLESS(zero.constant && zero.data != nullptr,
                       unsupported("zero points of int32 have to be constant zeros"));
  for (int64_t i = 0; i < zero.size(); ++i)
    SINTER_RETURN_UNLESS(zero.as<const int32_t>()[i] == 0,
                         unsupported("zero points of int32 have to be zero"));
  return ok_status();
}

Status accept_quantize(const OpCall& call) {
  return accept_steps(call, call.in(0).dtype, call.out(0).dtype, call.attrs<QuantizeAttrs>().block_size);
}
Status run_quantize(const OpCall& call, RunContext& context) {
  return run_steps(call, context, call.attrs<QuantizeAttrs>().axis);
}
Status accept_dequantize(const OpCall& call) {
  return accept_steps(call, call.in(0).dtype, call.out(0).dtype, call.attrs<DequantizeAttrs>().block_size);
}
Status run_dequantize(const OpCall& call, RunContext& context) {
  return run_steps(call, context, call.attrs<DequantizeAttrs>().axis);
}

Status accept_dynamic(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).dtype == DType::kFloat32,
                       unsupported("the simd kernel does not convert from this element type"));
  return accept_dense(call);
}
Status run_dynamic(const OpCall& call, RunContext& context) {
  const TensorView& x = call.in(0);
  const auto* from = x.as<const float>();
  const int64_t size = x.size();
  constexpr int64_t kMostParts = 64;
  const int64_t parts = std::clamp<int64_t>(size / kQuantizePiece, 1, kMostParts);
  float low[kMostParts] = {}, high[kMostParts] = {};  // zero is always within
  parallel_for(context.threads, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = size * i / parts, count = size * (i + 1) / parts - first;
      HWY_DYNAMIC_DISPATCH(widen_range)(from + first, static_cast<size_t>(count), low + i, high + i);
    }
  });
  const DynamicRange range =
      dynamic_range(*std::min_element(low, low + parts), *std::max_element(high, high + parts));
  const auto to = static_cast<DType>(call.attrs<DynamicQuantizeAttrs>().to);
  const int32_t zero = range.zero - (to == DType::kInt8 ? 128 : 0);
  if (call.has_output(1)) *call.out(1).as<float>() = range.scale;
  if (call.has_output(2)) *reinterpret_cast<uint8_t*>(call.out(2).data) = static_cast<uint8_t>(zero);
  if (!call.has_output(0)) return ok_status();
  auto* y = call.out(0).data;
  const auto run = HWY_DYNAMIC_POINTER(run_piece);
  parallel_for(context.threads, size, kQuantizePiece, [&](int64_t begin, int64_t end) {
    run(DType::kFloat32, to, from + begin, y + begin, static_cast<size_t>(end - begin),
        {nullptr, nullptr, range.scale, zero});
  });
  return ok_status();
}

}  // namespace

const Kernel kDynamicQuantizeKernel = {Op::kDynamicQuantize, nullptr, nullptr, run_dynamic, accept_dynamic};
const Kernel kQuantizeKernel = {Op::kQuantize, nullptr, nullptr, run_quantize, accept_quantize};
const Kernel kDequantizeKernel = {Op::kDequantize, nullptr, nullptr, run_dequantize, accept_dequantize};

}  // namespace sinter::simd
#endif  // HWY_ONCE

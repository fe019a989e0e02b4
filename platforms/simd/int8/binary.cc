// QAdd, QMul and QPRelu of dense int8 operands, with the bits of the reference kernels.
#include "platforms/simd/broadcast.h"
#include "platforms/simd/int16/elements.h"
#include "platforms/simd/int8/int8.h"
#include "runtime/core/integer_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/binary.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/binary_neon-inl.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q_BINARY_ONCE
#define SINTER_SIMD_Q_BINARY_ONCE
namespace sinter::simd {

// The operands of one row. Steps are 1, or 0 for an operand that is one number.
struct Int8Row {
  const int8_t *a, *b;
  int8_t* y;
  int64_t a_step, b_step;
};
struct AddSettings {
  int32_t a_multiplier, b_multiplier;
  int32_t offset;  // the part of the zero points
  int shift;
  bool ties;  // some sum may be halfway between two results
  Int8Range range;
};
struct MulSettings {
  int32_t a_zero, b_zero;
  float multiplier;
  Int8Range range;
};
struct PReluSettings {
  int32_t x_zero;
  float multiplier, max_slope;
  Int8Range range;
  bool safe;       // all slopes are within max_slope
  float max_used;  // of slopes, if safe, and of the multiplier, in magnitude
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Stores fn(a, b), which gives for int16 vectors the rounded result without its zero point, int16. The rest
// of a row is computed in a copy.
template <class Fn>
HWY_INLINE void zip(const Int8Row& row, size_t n, const Result& result, Fn fn) {
  const size_t half = hn::Lanes(D16());
  const V16 one_a = hn::Set(D16(), *row.a), one_b = hn::Set(D16(), *row.b);
  const auto map = [&](auto load_a, auto load_b) SINTER_SIMD_LAMBDA {
    for_each_vector(
        n,
        [&](size_t i) SINTER_SIMD_LAMBDA {
          hn::StoreU(result.bytes(fn(load_a(row.a + i), load_b(row.b + i)),
                                  fn(load_a(row.a + i + half), load_b(row.b + i + half))),
                     D8(), row.y + i);
        },
        [&](size_t i, size_t count) SINTER_SIMD_LAMBDA {
          HWY_ALIGN int8_t a[hn::MaxLanes(D8())] = {}, b[hn::MaxLanes(D8())] = {};
          if (row.a_step != 0) std::memcpy(a, row.a + i, count);
          if (row.b_step != 0) std::memcpy(b, row.b + i, count);
          hn::Store(result.bytes(fn(load_a(a), load_b(b)), fn(load_a(a + half), load_b(b + half))), D8(), a);
          std::memcpy(row.y + i, a, count);
        });
  };
  const auto each = [](const int8_t* p) SINTER_SIMD_LAMBDA { return load16(p); };
  if (row.a_step != 0 && row.b_step != 0)
    map(each, each);
  else if (row.a_step != 0)
    map(each, [=](const int8_t*) SINTER_SIMD_LAMBDA { return one_b; });
  else if (row.b_step != 0)
    map([=](const int8_t*) SINTER_SIMD_LAMBDA { return one_a; }, each);
  else
    map([=](const int8_t*) SINTER_SIMD_LAMBDA { return one_a; },
        [=](const int8_t*) SINTER_SIMD_LAMBDA { return one_b; });
}

// Returns the two multipliers, for pairs of a and b.
HWY_INLINE V16 multiplier_pairs(int32_t a, int32_t b) {
  return hn::BitCast(D16(), hn::Set(D32(), static_cast<int32_t>(static_cast<uint32_t>(b) << 16 |
                                                                (static_cast<uint32_t>(a) & 0xffff))));
}

// Multipliers of 16 bits take one product of pairs, wider ones are split at bit 11.
template <bool kNarrow, bool kTies>
HWY_INLINE void add_row(const Int8Row& row, size_t n, const AddSettings& s) {
  const D32 d;
  const V16 low = kNarrow ? multiplier_pairs(s.a_multiplier, s.b_multiplier)
                          : multiplier_pairs(s.a_multiplier & 2047, s.b_multiplier & 2047);
  const V16 high = multiplier_pairs(s.a_multiplier >> 11, s.b_multiplier >> 11);
  const int32_t half = s.shift > 0 ? 1 << (s.shift - 1) : 0;
  const V32 offset = hn::Set(d, s.offset + (kTies ? 0 : half)), odd = hn::Set(d, s.shift > 0 ? 1 : 0),
            below_half = hn::Set(d, s.shift > 0 ? half - 1 : 0);
  const auto rounded = [=](V32 v) SINTER_SIMD_LAMBDA {
    if constexpr (kTies) v = hn::Add(hn::Add(v, below_half), hn::And(hn::ShiftRightSame(v, s.shift), odd));
    return hn::ShiftRightSame(v, s.shift);
  };
  const auto scaled = [=](V16 pairs) SINTER_SIMD_LAMBDA {
    V32 v = hn::Add(hn::WidenMulPairwiseAdd(d, pairs, low), offset);
    if constexpr (!kNarrow) v = hn::Add(v, hn::ShiftLeft<11>(hn::WidenMulPairwiseAdd(d, pairs, high)));
    return rounded(v);
  };
  const Result result(s.range);
  Int8Row rest = row;
#if HWY_ARCH_X86
  // Bytes of a and b alternate and are widened to 256 times their value. Interleaving and narrowing stay
  // within blocks of 128 bits, so that results are in order.
  if (row.a_step != 0 && row.b_step != 0) {
    const D8 bytes;
    const V16 low8 = kNarrow ? low : multiplier_pairs(s.a_multiplier & 255, s.b_multiplier & 255),
              high8 = multiplier_pairs(s.a_multiplier >> 8, s.b_multiplier >> 8);
    const auto four = [=](V8 pairs256) SINTER_SIMD_LAMBDA {
      const V16 p = hn::BitCast(D16(), pairs256);
      V32 v = hn::Add(hn::WidenMulPairwiseAdd(d, hn::ShiftRight<8>(p), low8), offset);
      if constexpr (!kNarrow) v = hn::Add(v, hn::WidenMulPairwiseAdd(d, p, high8));
      return rounded(v);
    };
    const auto half_of = [=](V8 pairs) SINTER_SIMD_LAMBDA {
      const V8 nothing = hn::Zero(bytes);
      return hn::SaturatedAdd(rejoin(four(hn::InterleaveLower(bytes, nothing, pairs)),
                                     four(hn::InterleaveUpper(bytes, nothing, pairs))),
                              result.zero);
    };
    for (const size_t lanes = hn::Lanes(bytes); n >= lanes; n -= lanes) {
      const V8 a = hn::LoadU(bytes, rest.a), b = hn::LoadU(bytes, rest.b);
      const V8 y = hn::ReorderDemote2To(bytes, half_of(hn::InterleaveLower(bytes, a, b)),
                                        half_of(hn::InterleaveUpper(bytes, a, b)));
      hn::StoreU(hn::Min(hn::Max(y, result.min), result.max), bytes, rest.y);
      rest.a += lanes, rest.b += lanes, rest.y += lanes;
    }
    if (n == 0) return;
  }
#elif HWY_ARCH_ARM_A64
  if (row.a_step != 0 && row.b_step != 0 && s.shift >= 16) {
    const size_t done = n / 16 * 16;
    add_sixteens(row.a, row.b, row.y, done,
                 SumOfTwo<kTies>(s.a_multiplier, s.b_multiplier, s.offset, s.shift), result);
    rest.a += done, rest.b += done, rest.y += done, n -= done;
  }
#endif
  zip(rest, n, result, [=](V16 a, V16 b) SINTER_SIMD_LAMBDA {
    return rejoin(scaled(hn::InterleaveLower(D16(), a, b)), scaled(hn::InterleaveUpper(D16(), a, b)));
  });
}
void q_add(const Int8Row& row, size_t n, const AddSettings& s) {
  const auto narrow = [](int32_t m) { return m >= -32768 && m <= 32767; };
  if (narrow(s.a_multiplier) && narrow(s.b_multiplier))
    s.ties ? add_row<true, true>(row, n, s) : add_row<true, false>(row, n, s);
  else
    s.ties ? add_row<false, true>(row, n, s) : add_row<false, false>(row, n, s);
}

void q_mul(const Int8Row& row, size_t n, const MulSettings& s) {
  const V16 a_zero = hn::Set(D16(), static_cast<int16_t>(s.a_zero)),
            b_zero = hn::Set(D16(), static_cast<int16_t>(s.b_zero));
  const VF m = hn::Set(DF(), s.multiplier);
  const auto scaled = [=](V16 product) SINTER_SIMD_LAMBDA {
    return nearest(hn::Mul(hn::ConvertTo(DF(), hn::BitCast(D32(), product)), m));
  };
  zip(row, n, Result(s.range), [=](V16 a, V16 b) SINTER_SIMD_LAMBDA {
    a = hn::Sub(a, a_zero), b = hn::Sub(b, b_zero);
    const V16 low = hn::Mul(a, b), high = hn::MulHigh(a, b);
    return rejoin(scaled(hn::InterleaveLower(D16(), low, high)),
                  scaled(hn::InterleaveUpper(D16(), low, high)));
  });
}

// With kSafe, every slope is used.
template <bool kSafe>
struct PRelu {
  V32 zero;
  VF multiplier, most;
  Result result;

  HWY_INLINE explicit PRelu(const PReluSettings& s)
      : zero(hn::Set(D32(), s.x_zero)),
        multiplier(hn::Set(DF(), s.multiplier)),
        most(hn::Set(DF(), s.max_slope)),
        result(s.range) {}

  HWY_INLINE V32 part(const int8_t* x, const float* slopes) const {
    const V32 difference = hn::Sub(load32(x), zero);
    VF slope = hn::LoadU(DF(), slopes);
    if constexpr (!kSafe) slope = hn::IfThenElseZero(hn::Le(hn::Abs(slope), most), slope);
    const VF v = hn::ConvertTo(DF(), difference);
    return nearest(hn::Mul(v, hn::IfNegativeThenElse(v, slope, multiplier)));  // below 2^22
  }
  // Computes a vector of bytes; slopes are `step` apart from part to part.
  HWY_INLINE V8 operator()(const int8_t* x, const float* slopes, size_t step) const {
    const size_t lanes = hn::Lanes(D32());
    return result.bytes(part(x, slopes), part(x + lanes, slopes + step),
                        part(x + 2 * lanes, slopes + 2 * step), part(x + 3 * lanes, slopes + 3 * step));
  }
};

template <bool kSafe>
HWY_INLINE void prelu_row(const int8_t* x, const float* slopes, int8_t* y, int64_t step, size_t n,
                          const PReluSettings& s) {
  const D8 d;
  const size_t lanes = hn::Lanes(d);
  const PRelu<kSafe> prelu(s);
  HWY_ALIGN float same[hn::MaxLanes(DF())];
  if (step == 0) hn::Store(hn::Set(DF(), *slopes), DF(), same);
  const size_t part = step == 0 ? 0 : hn::Lanes(DF());
  size_t i = 0;
#if HWY_ARCH_ARM_A64
  if (kSafe && s.max_used <= kInt16Slope) {
    i = n / 16 * 16;
    prelu_sixteens(x, step == 0 ? same : slopes, part, y, i, s.x_zero, s.multiplier, prelu.result);
  }
#endif
  for (; i + lanes <= n; i += lanes) hn::StoreU(prelu(x + i, step == 0 ? same : slopes + i, part), d, y + i);
  if (i == n) return;
  const size_t count = n - i;
  HWY_ALIGN int8_t bytes[hn::MaxLanes(D8())] = {};
  HWY_ALIGN float rest[hn::MaxLanes(D8())] = {};
  std::memcpy(bytes, x + i, count);
  if (step != 0) std::memcpy(rest, slopes + i, count * sizeof(float));
  hn::Store(prelu(bytes, step == 0 ? same : rest, part), d, bytes);
  std::memcpy(y + i, bytes, count);
}

// `step` is 0 for one slope.
void q_prelu(const int8_t* x, const float* slopes, int8_t* y, int64_t step, size_t n,
             const PReluSettings& s) {
  if (s.safe)
    prelu_row<true>(x, slopes, y, step, n, s);
  else
    prelu_row<false>(x, slopes, y, step, n, s);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(q_add);
HWY_EXPORT(q_mul);
HWY_EXPORT(q_prelu);

constexpr int64_t kManyElements = 8192;  // elements that outweigh a search for ties

// Returns whether a * a_multiplier + b * b_multiplier + offset is halfway between two multiples of 2^shift
// for some a and b.
bool may_tie(const AddSettings& s) {
  if (s.shift == 0) return false;
  const uint32_t mask = (uint32_t{1} << s.shift) - 1, half = uint32_t{1} << (s.shift - 1);
  // b's multiplier is odd * 2^zeros, modulo 2^shift.
  int zeros = 0;
  auto odd = static_cast<uint32_t>(s.b_multiplier);
  for (; zeros < s.shift && odd % 2 == 0; ++zeros) odd /= 2;
  const int bits = s.shift - zeros;
  uint32_t inverse = odd;  // inverse of 3 bits, then twice as many
  for (int i = 0; i < 4; ++i) inverse *= 2 - odd * inverse;
  for (int32_t a = -128; a < 128; ++a) {
    const uint32_t rest = (half - static_cast<uint32_t>(s.offset) -
                           static_cast<uint32_t>(a) * static_cast<uint32_t>(s.a_multiplier)) &
                          mask;
    if ((rest & ((uint32_t{1} << zeros) - 1)) != 0) continue;
    if (bits <= 8) return true;
    // The b that ties, modulo 2^bits, of either sign.
    const uint32_t b = ((rest >> zeros) * inverse + 128) & ((uint32_t{1} << bits) - 1);
    if (b < 256) return true;
  }
  return false;
}

// Calls row(Int8Row, n, settings).
template <class Row, class Settings>
Status run_pair(const OpCall& call, RunContext& context, Row row, const Settings& settings) {
  for_each_pair_row<int8_t, int8_t, int8_t>(
      call, context.threads,
      [=](const int8_t* a, const int8_t* b, int8_t* y, int64_t a_step, int64_t b_step, size_t n) {
        row({a, b, y, a_step, b_step}, n, settings);
      });
  return ok_status();
}

bool wide(const OpCall& call) { return call.in(0).dtype == DType::kInt16; }

Status run_add(const OpCall& call, RunContext& context) {
  if (wide(call)) return run_q16_add(call, context);
  const auto& a = call.attrs<QAddAttrs>();
  AddSettings s{static_cast<int32_t>(a.a_multiplier),
                static_cast<int32_t>(a.b_multiplier),
                static_cast<int32_t>(-(a.a_zero * a.a_multiplier + a.b_zero * a.b_multiplier)),
                static_cast<int>(a.shift),
                true,
                int8_range(a)};
  if (call.out(0).size() >= kManyElements) s.ties = may_tie(s);
  return run_pair(call, context, HWY_DYNAMIC_POINTER(q_add), s);
}

Status run_mul(const OpCall& call, RunContext& context) {
  if (wide(call)) return run_q16_mul(call, context);
  const auto& a = call.attrs<QMulAttrs>();
  return run_pair(call, context, HWY_DYNAMIC_POINTER(q_mul),
                  MulSettings{static_cast<int32_t>(a.a_zero), static_cast<int32_t>(a.b_zero),
                              static_cast<float>(a.multiplier), int8_range(a)});
}

Status run_prelu(const OpCall& call, RunContext& context) {
  if (wide(call)) return run_q16_prelu(call, context);
  const auto& a = call.attrs<QPReluAttrs>();
  PReluSettings s{static_cast<int32_t>(a.x_zero),
                  static_cast<float>(a.multiplier),
                  static_cast<float>(kMaxIntegerMultiplier),
                  int8_range(a),
                  true,
                  std::fabs(static_cast<float>(a.multiplier))};
  const auto* slopes = call.in(1).as<const float>();
  for (int64_t i = 0; i < call.in(1).size(); ++i) {
    s.safe &= std::fabs(slopes[i]) <= s.max_slope;
    s.max_used = std::max(s.max_used, std::fabs(slopes[i]));
  }
  const auto run = HWY_DYNAMIC_POINTER(q_prelu);
  for_each_pair_row<int8_t, float, int8_t>(call, context.threads,
                                           [=](const int8_t* x, const float* slopes, int8_t* y, int64_t,
                                               int64_t step, size_t n) { run(x, slopes, y, step, n, s); });
  return ok_status();
}

}  // namespace

const Kernel kQAddKernel = {Op::kQAdd, nullptr, nullptr, run_add, accept_dense};
const Kernel kQMulKernel = {Op::kQMul, nullptr, nullptr, run_mul, accept_dense};
const Kernel kQPReluKernel = {Op::kQPRelu, nullptr, nullptr, run_prelu, accept_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE

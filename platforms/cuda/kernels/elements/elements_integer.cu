// Element-wise programs in integers: all integers and bool, elements of any type that only move (as unsigned
// integers of their width), and conversions from integers.
#include "platforms/cuda/kernels/elements/element_program.h"
#include "platforms/cuda/kernels/elements/thread_elements.h"
#include "runtime/core/float_formats.h"

namespace sinter::cuda {
namespace {

// Returns the number of `bits` bits, in 64.
SINTER_DEVICE int64_t extended(uint64_t v, int bits, bool is_unsigned) {
  const int rest = 64 - bits;
  return is_unsigned ? static_cast<int64_t>(v << rest >> rest) : static_cast<int64_t>(v << rest) >> rest;
}

SINTER_DEVICE int64_t wrapping_product(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
SINTER_DEVICE int64_t wrapping_sum(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
SINTER_DEVICE int64_t wrapping_difference(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
SINTER_DEVICE bool is_less(int64_t x, int64_t y, bool is_unsigned) {
  return is_unsigned ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
}

// Rounds towards zero; x / 0 = 0, and the lowest number divided by -1 wraps.
SINTER_DEVICE int64_t quotient(int64_t x, int64_t y, bool is_unsigned) {
  if (y == 0) return 0;
  // Most numbers are short, and their division is a third as long.
  if (((static_cast<uint64_t>(x) | static_cast<uint64_t>(y)) >> 32) == 0)
    return static_cast<uint32_t>(x) / static_cast<uint32_t>(y);
  if (is_unsigned) return static_cast<int64_t>(static_cast<uint64_t>(x) / static_cast<uint64_t>(y));
  return y == -1 ? wrapping_difference(0, x) : x / y;
}
// With `floors`, the result has the divisor's sign, else the dividend's. By 0 it is 0.
SINTER_DEVICE int64_t remainder_of(int64_t x, int64_t y, bool floors, bool is_unsigned) {
  if (y == 0) return 0;
  const int64_t r = wrapping_difference(x, wrapping_product(quotient(x, y, is_unsigned), y));
  return floors && !is_unsigned && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// The power wraps; a negative exponent gives the truncated quotient (0 for a base of 0).
SINTER_DEVICE int64_t power(int64_t base, int64_t exponent, bool base_unsigned, bool exponent_unsigned) {
  if (!exponent_unsigned && exponent < 0)
    return base == 1 ? 1 : base == -1 && !base_unsigned ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<int64_t>(result);
}

// Counts of the width or more, or below 0, shift all bits out.
SINTER_DEVICE int64_t shifted_left(int64_t x, int64_t count, int bits) {
  return static_cast<uint64_t>(count) >= static_cast<uint64_t>(bits)
             ? 0
             : static_cast<int64_t>(static_cast<uint64_t>(x) << count);
}
SINTER_DEVICE int64_t shifted_right(int64_t x, int64_t count, int bits, bool is_unsigned) {
  if (static_cast<uint64_t>(count) >= static_cast<uint64_t>(bits)) return !is_unsigned && x < 0 ? -1 : 0;
  return is_unsigned ? static_cast<int64_t>(static_cast<uint64_t>(x) >> count) : x >> count;
}

using Instruction = ElementInstruction<int64_t>;

SINTER_DEVICE void compute(const Instruction& c, int64_t (&x)[4], int64_t (&y)[4], const int64_t (&z)[4]) {
  using I = int64_t;
  using F = IntegerFunction;
  const bool u = c.is_unsigned;
  const int bits = c.bits;
  switch (static_cast<F>(c.function)) {
    case F::kAbs:
      return each(x, [u](I v) { return !u && v < 0 ? wrapping_difference(0, v) : v; });
    case F::kNeg:
      return each(x, [](I v) { return wrapping_difference(0, v); });
    case F::kSign:
      return each(x, [u](I v) { return v == 0 ? I{0} : !u && v < 0 ? I{-1} : I{1}; });
    case F::kBitNot:
      return each(x, [](I v) { return ~v; });
    case F::kNot:
      return each(x, [](I v) { return I{v == 0}; });
    case F::kClamp:
      return each(x, [u, lower = c.with[0], upper = c.with[1]](I v) {
        const I raised = is_less(v, lower, u) ? lower : v;
        return is_less(upper, raised, u) ? upper : raised;
      });
    case F::kPRelu:
      return each(x, y, [u](I v, I slope) { return !u && v < 0 ? wrapping_product(slope, v) : v; });
    case F::kAdd:
      return each(x, y, [](I v, I w) { return wrapping_sum(v, w); });
    case F::kSub:
      return each(x, y, [](I v, I w) { return wrapping_difference(v, w); });
    case F::kMul:
      return each(x, y, [](I v, I w) { return wrapping_product(v, w); });
    case F::kDiv:
      return by_turns(x, y, [u](I v, I w) { return quotient(v, w, u); });
    case F::kPow:
      return by_turns(x, y, [u, other = c.with[0] != 0](I v, I w) { return power(v, w, u, other); });
    case F::kModFloor:
      return by_turns(x, y, [u](I v, I w) { return remainder_of(v, w, true, u); });
    case F::kModTruncate:
      return by_turns(x, y, [u](I v, I w) { return remainder_of(v, w, false, u); });
    case F::kMin:
      return each(x, y, [u](I v, I w) { return is_less(v, w, u) ? v : w; });
    case F::kMax:
      return each(x, y, [u](I v, I w) { return is_less(w, v, u) ? v : w; });
    case F::kEqual:
      return each(x, y, [](I v, I w) { return I{v == w}; });
    case F::kNotEqual:
      return each(x, y, [](I v, I w) { return I{v != w}; });
    case F::kLess:
      return each(x, y, [u](I v, I w) { return I{is_less(v, w, u)}; });
    case F::kLessOrEqual:
      return each(x, y, [u](I v, I w) { return I{!is_less(w, v, u)}; });
    case F::kGreater:
      return each(x, y, [u](I v, I w) { return I{is_less(w, v, u)}; });
    case F::kGreaterOrEqual:
      return each(x, y, [u](I v, I w) { return I{!is_less(v, w, u)}; });
    case F::kAnd:
      return each(x, y, [](I v, I w) { return v & w; });
    case F::kOr:
      return each(x, y, [](I v, I w) { return v | w; });
    case F::kXor:
      return each(x, y, [](I v, I w) { return v ^ w; });
    case F::kShiftLeft:
      return each(x, y, [bits](I v, I w) { return shifted_left(v, w, bits); });
    case F::kShiftRight:
      return each(x, y, [bits, u](I v, I w) { return shifted_right(v, w, bits, u); });
    default:  // kWhere
      for (int i = 0; i < 4; ++i) x[i] = x[i] != 0 ? y[i] : z[i];
      return;
  }
}

// Rounds once.
SINTER_DEVICE uint64_t float_bits(DType t, int64_t x, bool is_unsigned) {
  const auto u = static_cast<uint64_t>(x);
  if (t == DType::kFloat32) return bits_of(is_unsigned ? static_cast<float>(u) : static_cast<float>(x));
  if (t == DType::kFloat64) return bits_of(is_unsigned ? static_cast<double>(u) : static_cast<double>(x));
  const double v = is_unsigned ? sticky_double(u) : sticky_double(x);
  return t == DType::kFloat16 ? encode_float<kFloat16Format>(v) : encode_float<kBFloat16Format>(v);
}

struct Integers {
  SINTER_DEVICE static void load(const ElementBox& box, const ElementOperand& o, const ElementPlace& place,
                                 int64_t (&x)[4]) {
    uint64_t bits[4];
    read_wide(box, o, place, bits);
    if (o.dtype == DType::kBool)
      for (int i = 0; i < 4; ++i) x[i] = bits[i] != 0 ? 1 : 0;
    else
      for (int i = 0; i < 4; ++i) x[i] = extended(bits[i], o.width * 8, !is_signed_integer(o.dtype));
  }
  // Integers wrap. Floats only end a program.
  SINTER_DEVICE static void store(const Instruction& c, const ElementBox& box, const ElementOperand& o,
                                  const ElementPlace& place, int64_t (&x)[4]) {
    uint64_t bits[4];
    if (is_float(o.dtype)) {
      for (int i = 0; i < 4; ++i) bits[i] = 0;
      SINTER_ROLLED for (int i = 0; i < 4; ++i) {
        const uint64_t v = float_bits(o.dtype, x[0], c.is_unsigned);
        x[0] = x[1], x[1] = x[2], x[2] = x[3];
        bits[0] = bits[1], bits[1] = bits[2], bits[2] = bits[3], bits[3] = v;
      }
    } else {
      for (int i = 0; i < 4; ++i) {
        x[i] = o.dtype == DType::kBool
                   ? (x[i] != 0 ? 1 : 0)
                   : extended(static_cast<uint64_t>(x[i]), o.width * 8, !is_signed_integer(o.dtype));
        bits[i] = static_cast<uint64_t>(x[i]);
      }
    }
    if (o.data != nullptr) write_wide(box, o, place, bits);
  }
  SINTER_DEVICE static void compute(const Instruction& c, int64_t (&x)[4], int64_t (&y)[4], int64_t (&z)[4]) {
    cuda::compute(c, x, y, z);
  }
};

}  // namespace

SINTER_KERNEL(elements_integer, IntegerElements) { run_program<Integers>(a); }

}  // namespace sinter::cuda

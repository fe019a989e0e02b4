// Element-wise programs in double: float64, powers of operands of different types, and conversions from
// float64.
#include "platforms/cuda/kernels/elements/element_program.h"
#include "platforms/cuda/kernels/elements/float_functions.h"
#include "platforms/cuda/kernels/elements/saturate.h"
#include "runtime/core/float_formats.h"

namespace sinter::cuda {
namespace {

SINTER_DEVICE double number_of(DType t, uint64_t bits) {
  switch (t) {
    case DType::kFloat32:
      return static_cast<double>(float_of(static_cast<uint32_t>(bits)));
    case DType::kFloat16:
      return static_cast<double>(widen(Float16{static_cast<uint16_t>(bits)}));
    case DType::kBFloat16:
      return static_cast<double>(widen(BFloat16{static_cast<uint16_t>(bits)}));
    case DType::kInt8:
      return static_cast<double>(static_cast<int8_t>(bits));
    case DType::kInt16:
      return static_cast<double>(static_cast<int16_t>(bits));
    case DType::kInt32:
      return static_cast<double>(static_cast<int32_t>(bits));
    case DType::kInt64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return static_cast<double>(bits);
    case DType::kBool:
      return bits != 0 ? 1.0 : 0.0;
    case DType::kFloat8E8M0:
      return decode_e8m0(static_cast<uint8_t>(bits));
    default:
      return double_of(bits);
  }
}

SINTER_DEVICE uint64_t integer_of(double v, int64_t lowest, int64_t highest) {
  const auto n = saturated<int64_t>(v);
  return static_cast<uint64_t>(n < lowest ? lowest : n > highest ? highest : n);
}
// Floats are rounded once. Integers are rounded towards zero and saturated.
SINTER_DEVICE uint64_t bits_as(DType t, double v) {
  switch (t) {
    case DType::kFloat32:
      return bits_of(static_cast<float>(v));
    case DType::kFloat16:
      return encode_float<kFloat16Format>(v);
    case DType::kBFloat16:
      return encode_float<kBFloat16Format>(v);
    case DType::kInt8:
      return integer_of(v, INT8_MIN, INT8_MAX);
    case DType::kUint8:
      return integer_of(v, 0, UINT8_MAX);
    case DType::kInt16:
      return integer_of(v, INT16_MIN, INT16_MAX);
    case DType::kUint16:
      return integer_of(v, 0, UINT16_MAX);
    case DType::kInt32:
      return integer_of(v, INT32_MIN, INT32_MAX);
    case DType::kUint32:
      return integer_of(v, 0, UINT32_MAX);
    case DType::kInt64:
      return static_cast<uint64_t>(saturated<int64_t>(v));
    case DType::kUint64:
      return saturated<uint64_t>(v);
    case DType::kBool:
      return v != 0 ? 1 : 0;
    default:
      return bits_of(v);
  }
}

struct Doubles {
  SINTER_DEVICE static void load(const ElementBox& box, const ElementOperand& o, const ElementPlace& place,
                                 double (&x)[4]) {
    uint64_t bits[4];
    read_wide(box, o, place, bits);
    if (o.dtype == DType::kFloat64)
      for (int i = 0; i < 4; ++i) x[i] = double_of(bits[i]);
    else
      turn(bits, x, [t = o.dtype](uint64_t b, double) { return Pair{0, number_of(t, b)}; });
  }
  SINTER_DEVICE static void store(const ElementInstruction<double>&, const ElementBox& box,
                                  const ElementOperand& o, const ElementPlace& place, double (&x)[4]) {
    uint64_t bits[4] = {};
    if (o.dtype == DType::kFloat64)
      for (int i = 0; i < 4; ++i) bits[i] = bits_of(x[i]);
    else
      turn(bits, x, [t = o.dtype](uint64_t, double v) {
        const uint64_t b = bits_as(t, v);
        return Pair{b, number_of(t, b)};
      });
    if (o.data != nullptr) write_wide(box, o, place, bits);
  }
  SINTER_DEVICE static void compute(const ElementInstruction<double>& c, double (&x)[4], double (&y)[4],
                                    const double (&z)[4]) {
    cuda::compute(c, x, y, z);
  }

 private:
  struct Pair {
    uint64_t bits;
    double value;
  };
  // Applies by_turns to both.
  template <class F>
  SINTER_DEVICE static void turn(uint64_t (&bits)[4], double (&x)[4], F f) {
    SINTER_ROLLED for (int i = 0; i < 4; ++i) {
      const Pair v = f(bits[0], x[0]);
      bits[0] = bits[1], bits[1] = bits[2], bits[2] = bits[3], bits[3] = v.bits;
      x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = v.value;
    }
  }
};

}  // namespace

SINTER_KERNEL(elements_double, DoubleElements) { run_program<Doubles>(a); }

}  // namespace sinter::cuda

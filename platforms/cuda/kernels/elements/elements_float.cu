// Element-wise programs in float: float32, float16, bfloat16, the integers that float holds, and conversions
// from float.
#include <limits>

#include "platforms/cuda/kernels/elements/element_program.h"
#include "platforms/cuda/kernels/elements/float_functions.h"
#include "platforms/cuda/kernels/elements/saturate.h"

namespace sinter::cuda {
namespace {

// Returns 2^(code - 127), and NaN for 255.
SINTER_DEVICE float value_of_e8m0(uint32_t code) {
  return float_of(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23);
}

struct Floats {
  // Integers of 32 bits round.
  SINTER_DEVICE static void load(const ElementBox& box, const ElementOperand& o, const ElementPlace& place,
                                 float (&x)[4]) {
    uint32_t bits[4];
    read_narrow(box, o, place, bits);
    switch (o.dtype) {
      case DType::kFloat16:
        for (int i = 0; i < 4; ++i) x[i] = widen(Float16{static_cast<uint16_t>(bits[i])});
        return;
      case DType::kBFloat16:
        for (int i = 0; i < 4; ++i) x[i] = widen(BFloat16{static_cast<uint16_t>(bits[i])});
        return;
      case DType::kInt8:
        for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(static_cast<int8_t>(bits[i]));
        return;
      case DType::kInt16:
        for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(static_cast<int16_t>(bits[i]));
        return;
      case DType::kInt32:
        for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(static_cast<int32_t>(bits[i]));
        return;
      case DType::kUint8:
      case DType::kUint16:
        for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(bits[i]);
        return;
      case DType::kBool:
        for (int i = 0; i < 4; ++i) x[i] = bits[i] != 0 ? 1.0f : 0.0f;
        return;
      case DType::kFloat8E8M0:
        for (int i = 0; i < 4; ++i) x[i] = value_of_e8m0(bits[i]);
        return;
      default:
        for (int i = 0; i < 4; ++i) x[i] = float_of(bits[i]);
        return;
    }
  }

  // Integers are rounded towards zero and saturated.
  SINTER_DEVICE static void store(const ElementInstruction<float>&, const ElementBox& box,
                                  const ElementOperand& o, const ElementPlace& place, float (&x)[4]) {
    if (o.width == 8) return store_wide(box, o, place, x);
    uint32_t bits[4];
    switch (o.dtype) {
      case DType::kFloat16:
        for (int i = 0; i < 4; ++i) {
          Float16 v;
          narrow(x[i], &v);
          bits[i] = v.bits, x[i] = widen(v);
        }
        break;
      case DType::kBFloat16:
        for (int i = 0; i < 4; ++i) {
          BFloat16 v;
          narrow(x[i], &v);
          bits[i] = v.bits, x[i] = widen(v);
        }
        break;
      case DType::kInt8:
        round_to(-128, 127, x, bits);
        break;
      case DType::kUint8:
        round_to(0, 255, x, bits);
        break;
      case DType::kInt16:
        round_to(-32768, 32767, x, bits);
        break;
      case DType::kUint16:
        round_to(0, 65535, x, bits);
        break;
      case DType::kInt32:
        round_to(INT32_MIN, INT32_MAX, x, bits);
        break;
      case DType::kUint32:
        for (int i = 0; i < 4; ++i) bits[i] = saturated<uint32_t>(x[i]);
        break;
      case DType::kBool:
        for (int i = 0; i < 4; ++i) bits[i] = x[i] != 0.0f, x[i] = bits[i] != 0 ? 1.0f : 0.0f;
        break;
      default:
        for (int i = 0; i < 4; ++i) bits[i] = bits_of(x[i]);
        break;
    }
    if (o.data != nullptr) write_narrow(box, o, place, bits);
  }

  SINTER_DEVICE static void compute(const ElementInstruction<float>& c, float (&x)[4], float (&y)[4],
                                    const float (&z)[4]) {
    cuda::compute(c, x, y, z);
  }

 private:
  SINTER_DEVICE static void round_to(int32_t lowest, int32_t highest, float (&x)[4], uint32_t (&bits)[4]) {
    for (int i = 0; i < 4; ++i) {
      const int32_t v = saturated<int32_t>(x[i]);
      const int32_t within = v < lowest ? lowest : v > highest ? highest : v;
      bits[i] = static_cast<uint32_t>(within), x[i] = static_cast<float>(within);
    }
  }
  SINTER_DEVICE static void store_wide(const ElementBox& box, const ElementOperand& o,
                                       const ElementPlace& place, const float (&x)[4]) {
    uint64_t bits[4];
    for (int i = 0; i < 4; ++i)
      bits[i] = o.dtype == DType::kFloat64 ? bits_of(static_cast<double>(x[i]))
                : o.dtype == DType::kInt64 ? static_cast<uint64_t>(saturated<int64_t>(x[i]))
                                           : saturated<uint64_t>(x[i]);
    write_wide(box, o, place, bits);
  }
};

}  // namespace

SINTER_KERNEL(elements_float, FloatElements) { run_program<Floats>(a); }

}  // namespace sinter::cuda

// Cast: between types of whole bytes by element-wise programs, others by kernels/elements/convert.cu.
#include "platforms/cuda/operators/convert.h"

namespace sinter::cuda {
namespace {

constexpr bool is_narrow_float(DType t) { return is_float8(t) || t == DType::kFloat4E2M1; }
// Returns whether programs read and write the type, which they do for types above 8 bits and integers of 8.
constexpr bool is_plain(DType t) { return !is_narrow_float(t) && !is_sub_byte(t); }
// Returns whether all numbers of the type are exact in float.
constexpr bool is_within_float(DType t) {
  return computes_in_float(t) || t == DType::kBool || (t >= DType::kInt8 && t <= DType::kUint16);
}

template <class T>
Status copy_by(ElementProgram<T>&& p, Lowering& l) {
  p.of_integers(l.in(0).dtype);
  p.load(l.in(0));
  p.store(l.out(0));
  return p.launch();
}

}  // namespace

Status lower_Cast(Lowering& l) {
  const TensorView &x = l.in(0), &y = l.out(0);
  if (!is_plain(x.dtype) || !is_plain(y.dtype)) return add_cast(l);
  if (computes_in_float(x.dtype) || (is_within_float(x.dtype) && computes_in_float(y.dtype)) ||
      (x.dtype == DType::kInt32 && y.dtype == DType::kFloat32))
    return copy_by(FloatProgram(l, y.shape()), l);
  if (x.dtype == DType::kFloat64) return copy_by(DoubleProgram(l, y.shape()), l);
  return copy_by(IntegerProgram(l, y.shape()), l);
}

}  // namespace sinter::cuda

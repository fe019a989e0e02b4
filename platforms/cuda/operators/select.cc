// Comparison, logic and selection: Compare, Bitwise, Where.
#include "platforms/cuda/operators/binary.h"

namespace sinter::cuda {
namespace {

DType unsigned_of(size_t bytes) {
  return bytes == 1   ? DType::kUint8
         : bytes == 2 ? DType::kUint16
         : bytes == 4 ? DType::kUint32
                      : DType::kUint64;
}

}  // namespace

Status lower_Compare(Lowering& l) {
  const int64_t fn = l.attrs<CompareAttrs>().fn;
  return add_binary(l, static_cast<FloatFunction>(static_cast<int64_t>(FloatFunction::kEqual) + fn),
                    static_cast<IntegerFunction>(static_cast<int64_t>(IntegerFunction::kEqual) + fn));
}

Status lower_Bitwise(Lowering& l) {
  const auto function =
      static_cast<IntegerFunction>(static_cast<int64_t>(IntegerFunction::kAnd) + l.attrs<BitwiseAttrs>().fn);
  SINTER_RETURN_UNLESS(is_integer(l.in(0).dtype) || l.in(0).dtype == DType::kBool,
                       unsupported("elements of %A are not computed", static_cast<int64_t>(l.in(0).dtype)));
  return add_binary(l, FloatFunction::kAdd, function);
}

// Moves elements. Types that compute in float use the kernel of the steps around it, so that it can join
// their chain.
Status lower_Where(Lowering& l) {
  const TensorView &x = l.in(1), &y = l.in(2);
  const DType t = x.dtype;
  if (computes_in_float(t)) {
    FloatProgram p(l, l.out(0).shape());
    p.load(l.in(0));
    p.function(FloatFunction::kWhere, {p.operand(x), p.operand(y)});
    p.store(l.out(0));
    return p.launch();
  }
  SINTER_RETURN_UNLESS(byte_width(t) != 0, unsupported("elements are smaller than a byte"));
  const DType bits = unsigned_of(byte_width(t));
  IntegerProgram p(l, l.out(0).shape());
  p.of_integers(bits);
  p.load(l.in(0));
  p.function(IntegerFunction::kWhere, {p.operand(x, bits), p.operand(y, bits)});
  p.store(p.operand(l.out(0), bits));
  return p.launch();
}

}  // namespace sinter::cuda

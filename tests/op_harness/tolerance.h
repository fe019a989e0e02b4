// The distance that a backend's results may have from those of the reference kernels. There is one table for
// all backends and all cases.
//
// Integers, truth values, results computed from integers, and results that are only moved or converted have
// the bits of the reference kernels. Other float results are compared with the reference kernels in float64.
#pragma once

#include <vector>

#include "runtime/core/op.h"
#include "tests/op_harness/tensor.h"

namespace sinter::test {

// Either the same bits, or |got - want| <= relative * |want| + absolute.
struct Tolerance {
  bool bits = false;
  bool any_nan = false;  // with `bits`: a NaN may have other bits
  double relative = 0, absolute = 0;
};

// Returns the tolerance for `want`, an output of the reference kernel, in float64 where bits do not matter.
Tolerance tolerance_of(Op op, const void* attrs, const std::vector<Tensor>& inputs, DType result,
                       const Tensor& want);

// Whether results of this type are compared by bits.
bool same_bits(Op op, DType first_input, DType result);

// `wide`: the expected values in float64, or, where bits count, as the reference kernel gives them. Values
// are rounded to the type of `got` first; NaN is expected only where NaN is, infinities exactly.
void expect_within(const Tensor& got, const Tensor& wide, const Tolerance& tolerance);

// Whether both have the same bits, but for those of NaN.
bool equal_but_for_nan(const Tensor& a, const Tensor& b);

// Returns float tensors in float64; other types and absent operands stay.
Tensor widened(const Tensor& t);

}  // namespace sinter::test

#include "tests/op_harness/expected.h"

#include <gtest/gtest.h>

namespace sinter::test {

void Expected::compare(const std::vector<Tensor>& got) {
  if (!known_) compute();
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].dtype == DType::kNone) continue;
    SCOPED_TRACE("output " + std::to_string(i));
    expect_within(got[i], want_[i], tolerances_[i]);
  }
}

void Expected::compute() {
  known_ = true;
  want_ = reference_;
  std::vector<Tensor> wide, results;
  bool needed = false;
  for (const Tensor& r : reference_)
    needed |= options_.in_float64 && r.dtype != DType::kNone &&
              !same_bits(call_.op, call_.inputs[0].dtype, r.dtype);
  for (const Tensor& t : call_.inputs) wide.push_back(widened(t));
  std::vector<TensorView> shapes;
  if (needed) {
    const Status inferred = infer_op(call_.op, call_.attrs, wide, &shapes, options_);
    const Status ran = inferred.ok() ? run_once(call_.op, call_.attrs, wide, shapes, Layout::kDense,
                                                Layout::kDense, -1, &results)
                                     : inferred;
    EXPECT_TRUE(ran.ok()) << "the reference in float64: " << sentence(ran);
  }
  for (size_t i = 0; i < reference_.size(); ++i) {
    const DType dtype = reference_[i].dtype;
    if (dtype != DType::kNone && !results.empty() && !same_bits(call_.op, call_.inputs[0].dtype, dtype))
      want_[i] = widened(results[i]);  // DynamicQuantize gives float32 whatever it takes
    else if (!same_bits(call_.op, call_.inputs[0].dtype, dtype))
      want_[i] = widened(reference_[i]);
    tolerances_.push_back(tolerance_of(call_.op, call_.attrs, call_.inputs, dtype, want_[i]));
  }
  if (!results.empty()) {
    SCOPED_TRACE("reference");
    compare(reference_);
  }
}

}  // namespace sinter::test

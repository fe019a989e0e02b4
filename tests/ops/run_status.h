// For cases that infer accepts and run refuses.
#pragma once

#include <vector>

#include "tests/op_harness/op_test.h"

namespace sinter::test {

// The status of one dense run; inference must succeed.
template <class A>
Status run_status(const A& attrs, const std::vector<Tensor>& inputs, const RunOptions& options = {}) {
  std::vector<TensorView> shapes;
  const Status inferred = infer_op(attrs, inputs, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << op_name(A::kOp) << " infer: " << sentence(inferred);
  if (!inferred.ok()) return ok_status();
  std::vector<Tensor> results;
  return run_once(attrs, inputs, shapes, Layout::kDense, Layout::kDense, -1, &results);
}

template <class A>
void expect_run_fails(Code code, const A& attrs, const std::vector<Tensor>& inputs) {
  const Status s = run_status(attrs, inputs);
  EXPECT_EQ(s.code, code) << op_name(A::kOp) << ": " << sentence(s);
}

}  // namespace sinter::test

// For cases that infer accepts and run refuses.
#pragma once

#include <vector>

#include "tests/op_harness/backends.h"
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

// What depends on the data fails on every backend that takes the call.
template <class A>
void expect_out_of_range(const A& attrs, const std::vector<Tensor>& inputs) {
  for (TestedBackend& backend : tested_backends())
    for (const bool constants : {true, false}) {
      const Status s = status_on(backend, A::kOp, &attrs, inputs, constants);
      EXPECT_TRUE(s.code == Code::kOutOfRange || s.code == Code::kUnsupported)
          << op_name(A::kOp) << " on " << backend.name() << ": " << sentence(s);
    }
}

template <class A>
void expect_run_fails(Code code, const A& attrs, const std::vector<Tensor>& inputs) {
  const Status s = run_status(attrs, inputs);
  EXPECT_EQ(s.code, code) << op_name(A::kOp) << ": " << sentence(s);
  if (code == Code::kOutOfRange) expect_out_of_range(attrs, inputs);
}

}  // namespace sinter::test

// The expected results of a call.
#pragma once

#include <vector>

#include "tests/op_harness/step.h"
#include "tests/op_harness/tolerance.h"

namespace sinter::test {

// The reference kernels' results, in float64 where the call requests it. They are computed when the first
// results are compared.
class Expected {
 public:
  Expected(const Call& call, const std::vector<Tensor>& reference, const RunOptions& options)
      : call_(call), reference_(reference), options_(options) {}
  void compare(const std::vector<Tensor>& got);

 private:
  void compute();

  const Call& call_;
  const std::vector<Tensor>& reference_;
  const RunOptions& options_;
  bool known_ = false;
  std::vector<Tensor> want_;
  std::vector<Tolerance> tolerances_;
};

}  // namespace sinter::test

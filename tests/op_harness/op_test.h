// Runs one op as a model would: on the reference kernels in every layout that its row allows, then on every
// backend of this build that takes the call (backends.h).
//
//   auto y = run_op(AddAttrs{}, {tensor<float>({2}, {1, 2}), tensor<float>({}, {3})});
//   expect_equal(y[0], tensor<float>({2}, {4, 5}));
//   expect_refused(AddAttrs{}, {tensor<float>({2}, {1, 2}), tensor<int8_t>({}, {3})});
//
// run_op infers, validates, takes exactly the stated workspace, runs with guard pages and poison around every
// operand, watched so that nothing is allocated, and repeats the run with strange strides (where the row has
// Any or Pixel), in place (where it has InPlace or InPlaceFirst) and with input 0 right behind output 0
// (Kernel::lead); all must give the same bytes as the dense run. It returns the reference kernel's results,
// with which those of backends are compared. A case states the expected results, unless the reference kernels
// define them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/core/in_place.h"
#include "runtime/kernels/reference.h"
#include "tests/memory/watch.h"
#include "tests/op_harness/operand.h"

namespace sinter::test {

bool a_driver_is_open();  // backends.h

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The differences from the usual call.
struct RunOptions {
  int outputs = -1;                // -1: as few as the row allows
  std::vector<int> unwanted = {};  // outputs left out
  bool strided = true, in_place = true;
  bool backends = true;    // false: the case is about the reference kernels' own precision
  bool in_float64 = true;  // false: the results depend on float32, in which backends must agree
  bool emulated =
      true;  // false: left out on emulated devices, where the call meets no code that smaller ones do not
  std::vector<const char*> taken_by = {};  // backends that must take the call, where they are built
};

// Returns how many of the first inputs, of `count`, may share their memory with output 0, by the op's row.
inline size_t most_in_place(const OpInfo& info, size_t count) {
  size_t most = 0;
  while (most < count && may_be_in_place(info.op, 0, most)) ++most;
  return most;
}

std::string sentence(const Status& s);

// The number of runs of a step.
#if defined(SINTER_SLOW_BUILD)
inline constexpr int kRuns = 1;
#else
inline constexpr int kRuns = 2;
#endif

// Runs a step several times, or once if it cannot be repeated. It may take nothing from the heap and, `alone`
// on its thread, no lock, and make no system call. A device's driver, whose threads do so, is not watched.
template <class F>
Status run_watched(Op op, bool alone, bool repeatable, F&& step) {
  const int runs = repeatable ? watched_runs(kRuns) : 1;
  Status status;
  const auto all = [&] {
    for (int i = 0; i < runs && status.ok(); ++i) status = step();
  };
  if (a_driver_is_open()) return all(), status;
  const Seen seen = watched(alone, all);
  EXPECT_TRUE(seen.nothing()) << op_name(op) << " made " << seen.text();
  return status;
}

// Only infers: returns the status, and gives the outputs' views.
Status infer_op(Op op, const void* attrs, const std::vector<Tensor>& inputs, std::vector<TensorView>* outputs,
                const RunOptions& options = {});
// Runs once in given layouts; `alias` >= 0: output 0 is in that input's memory.
Status run_once(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                const std::vector<TensorView>& shapes, Layout in_layout, Layout out_layout, int alias,
                std::vector<Tensor>* results);
template <class A>
Status infer_op(const A& attrs, const std::vector<Tensor>& inputs, std::vector<TensorView>* outputs,
                const RunOptions& options = {}) {
  return infer_op(A::kOp, &attrs, inputs, outputs, options);
}
template <class A>
Status run_once(const A& attrs, const std::vector<Tensor>& inputs, const std::vector<TensorView>& shapes,
                Layout in_layout, Layout out_layout, int alias, std::vector<Tensor>* results) {
  return run_once(A::kOp, &attrs, inputs, shapes, in_layout, out_layout, alias, results);
}

// Returns the results of all that the head of the file describes; after a failure, which is recorded, empty
// tensors.
std::vector<Tensor> run_op(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                           const RunOptions& options = {});
template <class A>
std::vector<Tensor> run_op(const A& attrs, const std::vector<Tensor>& inputs,
                           const RunOptions& options = {}) {
  return run_op(A::kOp, &attrs, inputs, options);
}

// Runs the op as run_op, and fails if `backend` refuses the call, where this build has it and it states that
// it computes the operation on this machine. Other backends may refuse.
template <class A>
void check_taken_by(const char* backend, const A& attrs, const std::vector<Tensor>& inputs,
                    RunOptions options = {}) {
  options.taken_by = {backend};
  run_op(A::kOp, &attrs, inputs, options);
}

// Expects that infer refuses the call.
template <class A>
void expect_refused(const A& attrs, const std::vector<Tensor>& inputs, const RunOptions& options = {}) {
  std::vector<TensorView> shapes;
  const Status s = infer_op(attrs, inputs, &shapes, options);
  EXPECT_FALSE(s.ok()) << op_name(A::kOp) << " was inferred";
  EXPECT_NE(s.message, nullptr);
}

}  // namespace sinter::test

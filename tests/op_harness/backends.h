// Runs calls on every backend of this build, and compares the results with those of the reference kernels.
//
// A backend is used as a session uses it: measure, pack, prepare, run, in exactly the memory that it states,
// painted and between guard pages, and watched so that a run allocates nothing. Of each call that it takes,
// results must be within tolerance.h of the reference, also where constants are not packed, and be the same
// bits with several threads, with strides and in place of an operand; the planning side must have given a
// workspace that suffices, and may take nothing that the device side refuses. Where a backend can be
// limited to instruction sets (instruction_sets.h), all of this holds for each of them.
//
// A backend in platforms.def is tested by that row alone. SINTER_TEST_BACKENDS, names separated by commas,
// limits the tests to some.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/platform.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {

struct TestedBackend {
  Backend* backend = nullptr;
  const Platform* platform = nullptr;
  Target target = {};            // this machine, or one with the platform's device
  std::map<Op, int> calls = {};  // by operation: those that it has computed

  std::string_view name() const { return platform->name; }
  bool is_emulated() const { return name().ends_with("-emulated"); }
  bool has_device_memory() const { return backend->memory() != nullptr; }
  // Whether it states that it computes the operation on this machine.
  bool claims(Op op) const;
};

// All, open: those of platforms.def, in its order, but for devices that SINTER_TEST_BACKENDS does not name.
std::vector<TestedBackend>& tested_backends();
// Whether one of them has a device's driver, whose threads take from the heap and give back at any time. What
// Sinter itself takes there, the emulated device shows.
bool a_driver_is_open();
// Null: this build does not have it, or the tests are limited to others.
TestedBackend* tested_backend(std::string_view name);
// Whether SINTER_TEST_BACKENDS limits the tests.
bool backends_are_limited();

// As long as this lives, calls run on one more backend.
class AlsoTested {
 public:
  AlsoTested(Backend& backend, const Platform& platform);
  ~AlsoTested();
  AlsoTested(const AlsoTested&) = delete;
  AlsoTested& operator=(const AlsoTested&) = delete;
};

// What run_op does last. `results`: the reference kernel's.
void check_backends(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                    const std::vector<TensorView>& shapes, const std::vector<Tensor>& results,
                    const RunOptions& options);

// A call on one thread.
struct MeasureOptions {
  bool constants = true;  // all inputs but the first
  Layout layout = Layout::kDense;
  int outputs = -1;  // -1: as few as the row allows
};
// The backend's answer.
Status measure_op(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                  const MeasureOptions& options, StepNeeds* needs);
template <class A>
bool takes(std::string_view backend, const A& attrs, const std::vector<Tensor>& inputs,
           const MeasureOptions& options = {}) {
  TestedBackend* tested = tested_backend(backend);
  StepNeeds needs;
  return tested != nullptr && measure_op(*tested, A::kOp, &attrs, inputs, options, &needs).ok();
}

// How a run ends that may fail, and that must leave the bytes beside its results alone: dense operands, one
// thread. kUnsupported: the backend refuses the call.
Status status_on(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                 bool constants);

// The results on one backend alone, which must take the call: dense operands, one thread. `constants`: all
// inputs but the first are.
std::vector<Tensor> run_on(std::string_view backend, Op op, const void* attrs,
                           const std::vector<Tensor>& inputs, bool constants);
template <class A>
std::vector<Tensor> run_on(std::string_view backend, const A& attrs, const std::vector<Tensor>& inputs,
                           bool constants = true) {
  return run_on(backend, A::kOp, &attrs, inputs, constants);
}

}  // namespace sinter::test

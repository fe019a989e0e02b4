// Runs calls on every backend of this build, and compares the results with those of the reference kernels.
//
// A backend is used as a session uses it: measure, pack, prepare, run, in exactly the memory that it states,
// painted and between guard pages, and watched so that a run allocates nothing. The results of each call that
// it takes must be within tolerance.h of the reference, also where constants are not packed, and be the same
// bits with several threads, with strides and in place of an operand; the planning side must have given a
// workspace that suffices, and may take no call that the device side refuses. Where a backend can be
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
  std::map<Op, int> calls = {};  // the number of calls of each operation that it has computed

  std::string_view name() const { return platform->name; }
  bool is_emulated() const { return name().ends_with("-emulated"); }
  bool has_device_memory() const { return backend->memory() != nullptr; }
  // Whether the backend states that it computes the operation on this machine.
  bool claims(Op op) const;
};

// Returns the open backends of platforms.def, in its order, but for devices that SINTER_TEST_BACKENDS omits.
std::vector<TestedBackend>& tested_backends();
// Whether one of them has a device's driver, whose threads use the heap at any time. The emulated device
// shows the memory that Sinter itself takes there.
bool a_driver_is_open();
// Returns the backend; null if this build does not have it, or the tests are limited to others.
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

// Compares all backends with `results`, those of the reference kernel. run_op calls it last.
void check_backends(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                    const std::vector<TensorView>& shapes, const std::vector<Tensor>& results,
                    const RunOptions& options);

// The settings of a measured call, which runs on one thread.
struct MeasureOptions {
  bool constants = true;  // all inputs but the first are constants
  Layout layout = Layout::kDense;
  int outputs = -1;  // -1: as few as the row allows
};
// Returns the backend's answer.
Status measure_op(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                  const MeasureOptions& options, StepNeeds* needs);
template <class A>
bool takes(std::string_view backend, const A& attrs, const std::vector<Tensor>& inputs,
           const MeasureOptions& options = {}) {
  TestedBackend* tested = tested_backend(backend);
  StepNeeds needs;
  return tested != nullptr && measure_op(*tested, A::kOp, &attrs, inputs, options, &needs).ok();
}

// Returns the status of a run on dense operands and one thread, which may fail, and must leave the bytes
// beside its results alone. kUnsupported: the backend refuses the call.
Status status_on(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                 bool constants);

// Returns the results on one backend, which must take the call, with dense operands and one thread.
// `constants`: all inputs but the first are constants.
std::vector<Tensor> run_on(std::string_view backend, Op op, const void* attrs,
                           const std::vector<Tensor>& inputs, bool constants);
template <class A>
std::vector<Tensor> run_on(std::string_view backend, const A& attrs, const std::vector<Tensor>& inputs,
                           bool constants = true) {
  return run_on(backend, A::kOp, &attrs, inputs, constants);
}

}  // namespace sinter::test

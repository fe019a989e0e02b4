// The life of a step on a tested backend: it is measured, prepared and run as by a session, in exactly the
// memory that the backend states.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/backend/backend.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/on_device.h"
#include "tests/op_harness/operand.h"

namespace sinter::test {

// A pool that gives the smallest possible pieces, the last first.
class TestPool final : public ThreadPool {
 public:
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    for (int64_t end = count; end > 0; end -= grain) task(context, std::max<int64_t>(end - grain, 0), end);
  }
  int thread_count() const override { return 3; }
};

struct Call {
  Op op;
  const void* attrs;
  const std::vector<Tensor>& inputs;
  const std::vector<TensorView>& shapes;
};

// One way to run a call. kPixels lays out operands 0, every other layout all of them.
struct Setting {
  const char* text;
  Layout in = Layout::kDense, out = Layout::kDense;
  bool constants = true;  // all inputs but the first are constants
  bool threads = false;
  int alias = -1;  // >= 0: output 0 is in that input's memory
};

inline bool is_wanted(const TensorView& v) { return v.rank != kUnwantedRank; }
inline Shape dims_of(const TensorView& v) {
  return is_wanted(v) ? Shape(v.shape().begin(), v.shape().end()) : Shape{};
}

// Returns the answer to a call whose operands, but for constants, have no data.
Status measure_views(TestedBackend& tested, const Call& call, const Setting& s, StepNeeds* needs);

// A step, which refers to its backend, call and setting.
class Step {
 public:
  Step(TestedBackend& tested, const Call& call, const Setting& setting)
      : tested_(tested), call_(call), setting_(setting) {}
  // Returns the results; nothing if the backend refuses the call.
  std::optional<std::vector<Tensor>> run();
  // Returns the status of the run, which may be an error that only the data shows.
  Status run_to_the_end();
  const StepNeeds& needs() const { return needs_; }

 private:
  bool lay_out();
  void bring_to_device();
  bool prepare();
  Status run_prepared();
  std::vector<Tensor> results() const;

  TestedBackend& tested_;
  const Call& call_;
  const Setting& setting_;
  StepNeeds needs_;
  TestPool pool_;
  std::vector<Operand> in_, out_;
  std::vector<TensorView> in_views_, out_views_;
  Operand prepared_{DType::kNone, {}, Layout::kDense}, packed_{DType::kNone, {}, Layout::kDense},
      workspace_{DType::kNone, {}, Layout::kDense}, scratch_{DType::kNone, {}, Layout::kDense};
  PreparedStep step_;
  std::optional<OnDevice> device_;
};

}  // namespace sinter::test

#include "tests/op_harness/backends.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/op_harness/expected.h"
#include "tests/op_harness/instruction_sets.h"
#include "tests/op_harness/step.h"

namespace sinter::test {
namespace {

// Large calls on a device run in the plainest layout alone, because an emulated device is slow.
constexpr size_t kMostBytesInAllLayouts = 1 << 14;
size_t operand_bytes(const Call& call) {
  size_t bytes = 0;
  for (const Tensor& t : call.inputs) bytes += t.bytes.size();
  for (const TensorView& v : call.shapes)
    if (is_wanted(v)) bytes += static_cast<size_t>(v.dense_bytes());
  return bytes;
}

// Runs the call in all ways on one backend and instruction set; returns false if the plainest is refused.
bool check_settings(TestedBackend& tested, const Call& call, const RunOptions& options, Expected& expected) {
  Setting plain{.text = "one thread"};
  Step first(tested, call, plain);
  auto one = first.run();
  if (!one) {
    plain.constants = false;
    one = Step(tested, call, plain).run();
    if (!one) return false;
  }
  expected.compare(*one);
  const auto same = [&](const Setting& s) {
    const auto other = Step(tested, call, s).run();
    for (size_t i = 0; other && i < one->size(); ++i)
      EXPECT_TRUE(equal_but_for_nan((*one)[i], (*other)[i])) << s.text << ": other bits in output " << i;
    return other.has_value();
  };
  const bool constants = plain.constants;
  if (!tested.has_device_memory()) {
    EXPECT_TRUE(same({.text = "several threads", .constants = constants, .threads = true})) << "refused";
  }
  if (constants && first.needs().packed != 0) {
    const Setting computed{.text = "computed operands", .constants = false, .threads = true};
    if (const auto other = Step(tested, call, computed).run()) expected.compare(*other);
  }
  if (tested.has_device_memory() && operand_bytes(call) > kMostBytesInAllLayouts) return true;
  const OpInfo& info = *op_info(call.op);
  if (tested.has_device_memory())
    same({.text = "shifted", .in = Layout::kShifted, .out = Layout::kShifted, .constants = constants});
  if (options.strided && info.in_strides != Strides::kDense) {
    using enum Layout;
    for (const bool threads : {false, true}) {
      if (threads && tested.has_device_memory()) continue;
      same({.text = "pixels apart",
            .in = kPixels,
            .out = kPixels,
            .constants = constants,
            .threads = threads});
    }
    same({.text = "pixels of the operand apart", .in = kPixels, .constants = constants});
    same({.text = "pixels of the result apart", .out = kPixels, .constants = constants});
    if (info.in_strides == Strides::kAny) {
      same({.text = "gaps", .in = kGaps, .out = kGaps, .constants = constants});
      same({.text = "reversed", .in = kReversed, .out = kReversed, .constants = constants});
    }
  }
  if (options.in_place && is_wanted(call.shapes[0]))
    for (size_t i = 0; i < most_in_place(info, call.inputs.size()); ++i) {
      const Tensor& t = call.inputs[i];
      if (t.dims == dims_of(call.shapes[0]) && byte_width(t.dtype) == byte_width(call.shapes[0].dtype))
        same({.text = "in place", .constants = constants && i == 0, .alias = static_cast<int>(i)});
    }
  return true;
}

}  // namespace

void check_backends(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                    const std::vector<TensorView>& shapes, const std::vector<Tensor>& results,
                    const RunOptions& options) {
  const Call call{op, attrs, inputs, shapes};
  Expected expected(call, results, options);
  for (TestedBackend& tested : tested_backends()) {
    if (tested.is_emulated() && !options.emulated) continue;
    const std::string where = std::string(op_name(op)) + " on " + tested.platform->name;
    const InstructionSets* sets = InstructionSets::of(tested.name());
    std::vector<const char*> names = sets != nullptr ? sets->names() : std::vector<const char*>{nullptr};
    bool taken = false;
    for (const char* name : names) {
      SCOPED_TRACE(name != nullptr ? where + ", " + name : where);
      EXPECT_TRUE(sets == nullptr || sets->limit(name));
      taken = check_settings(tested, call, options, expected);
      if (!taken) break;
    }
    if (sets != nullptr) sets->limit(nullptr);
    const bool named = std::any_of(options.taken_by.begin(), options.taken_by.end(),
                                   [&](const char* n) { return tested.name() == n; });
    EXPECT_TRUE(taken || !named || !tested.claims(op)) << where << ": refused";
  }
}

Status measure_op(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                  const MeasureOptions& options, StepNeeds* needs) {
  std::vector<TensorView> shapes;
  const Status inferred = infer_op(op, attrs, inputs, &shapes, {.outputs = options.outputs});
  EXPECT_TRUE(inferred.ok()) << op_name(op) << " infer: " << sentence(inferred);
  if (!inferred.ok()) return inferred;
  return measure_views(
      backend, {op, attrs, inputs, shapes},
      {.text = "", .in = options.layout, .out = options.layout, .constants = options.constants}, needs);
}

Status status_on(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                 bool constants) {
  std::vector<TensorView> shapes;
  EXPECT_TRUE(infer_op(op, attrs, inputs, &shapes).ok());
  const Setting plain{.text = "one thread", .constants = constants};
  return Step(backend, {op, attrs, inputs, shapes}, plain).run_to_the_end();
}

std::vector<Tensor> run_on(std::string_view backend, Op op, const void* attrs,
                           const std::vector<Tensor>& inputs, bool constants) {
  TestedBackend* tested = tested_backend(backend);
  std::vector<TensorView> shapes;
  EXPECT_TRUE(infer_op(op, attrs, inputs, &shapes).ok());
  const std::vector<Tensor> nothing(shapes.size());
  EXPECT_NE(tested, nullptr) << backend << " is not in this build";
  if (tested == nullptr) return nothing;
  const Setting plain{.text = "one thread", .constants = constants};
  const auto results = Step(*tested, {op, attrs, inputs, shapes}, plain).run();
  EXPECT_TRUE(results) << op_name(op) << " on " << backend << ": refused";
  return results.value_or(nothing);
}

}  // namespace sinter::test

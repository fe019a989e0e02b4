#include "converter/import/lower/unfit_branch.h"

#include <algorithm>

#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

const Diagnostic& first_refusal(const Diagnostics& reasons) {
  return *std::find_if(reasons.all().begin(), reasons.all().end(),
                       [](const Diagnostic& d) { return d.severity == Severity::kRefusal; });
}

// A value of these facts that is never computed, because `fault` fails.
ValueId never_computed(Builder& builder, ValueId fault, const Value& like) {
  const ValueId zero = builder.graph().add_constant(Constant::scalar(like.dtype, 0));
  const Dims one{1};
  std::vector<ValueId> v;
  if (!builder.emit(ViewAttrs{IntList(std::span<const int64_t>(one)), -1}, {zero}, 1, &v).ok() ||
      !builder.emit(GatherAttrs{0}, {v[0], fault}, 1, &v).ok())
    return kUnknown;
  if (like.dims.empty()) return v[0];
  const BroadcastAttrs whole{IntList(std::span<const int64_t>(like.dims))};
  return builder.emit(whole, {v[0]}, 1, &v).ok() ? v[0] : kUnknown;
}

}  // namespace

bool refused_for_shapes(const Diagnostics& reasons) {
  return reasons.refused() &&
         std::all_of(reasons.all().begin(), reasons.all().end(),
                     [](const Diagnostic& d) { return d.severity != Severity::kRefusal || d.shapes; });
}

LoweredBody unfit_branch(NodeLowering& n, const Graph& fitting, std::string_view branch,
                         const Diagnostics& reasons, Diagnostics& diagnostics) {
  const Diagnostic& why = first_refusal(reasons);
  LoweredBody body{std::make_shared<Graph>(), {}};
  body.graph->name = branch;
  body.graph->ledger = fitting.ledger;
  Builder builder(*body.graph);
  builder.set_origin({fmt::format("{} {}: {}", n.node().name, branch, why.node), n.node().op_type});
  const ValueId zero = body.graph->add_constant(Constant::scalar_int(DType::kInt64, 0));
  std::vector<ValueId> fault;
  const bool emitted =
      builder.emit(CheckLengthAttrs{static_cast<int64_t>(LengthRule::kUnfit)}, {zero, zero, zero}, 1, &fault)
          .ok();
  for (const ValueId id : fitting.outputs)
    body.graph->outputs.push_back(emitted ? never_computed(builder, fault[0], fitting.value(id)) : kUnknown);
  diagnostics.warn(
      n.node().name, n.node().op_type,
      fmt::format("its {} does not fit the shapes that the model is converted with, and a run that takes it "
                  "fails: node '{}' ({}): {}",
                  branch, why.node, why.op, why.message),
      n.parent().fixing_advice(n.input(0)) +
          ", so that this branch is never taken, or other shapes with "
          "--shape INPUT=D1,D2,...");
  return body;
}

}  // namespace sinter::convert

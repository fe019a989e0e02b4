// Look-ups in a plan's sorted lists, and of a step's operation.
#include "runtime/model/model_state.h"

namespace sinter::detail {

const char* step_op_name(const fb::Step& step) {
  CustomAttrs attrs;
  if (is_custom(step) && decode_attrs(step, &attrs).ok()) return custom_name(attrs.definition);
  return op_name(step_op(step));
}

const fb::ProgramPlan* find_plan(const fb::Profile& profile, uint32_t program) {
  return find_sorted(profile.plans(), program, [](const fb::ProgramPlan& plan) { return plan.program(); });
}

const fb::Placement* find_placement(const fb::ProgramPlan& plan, uint32_t value) {
  return find_sorted(plan.placements(), value, [](const fb::Placement& p) { return p.value(); });
}

TensorView placed_view(const fb::Value& value, const fb::Placement& placement) {
  TensorView view = value_view(value);
  if (placement.strides() != nullptr)
    for (int i = 0; i < view.rank; ++i) view.strides[i] = items(placement.strides())[static_cast<size_t>(i)];
  return view;
}

uint64_t extent_bytes(const TensorView& placed) {
  uint64_t extent = byte_width(placed.dtype);
  for (int i = 0; i < placed.rank; ++i) {
    if (placed.dims[i] == 0) return 0;
    if (placed.dims[i] > 1)
      extent += static_cast<uint64_t>(placed.dims[i] - 1) * static_cast<uint64_t>(placed.strides[i]);
  }
  return extent;
}

const fb::DeviceWorkspace* find_device_workspace(const fb::ProgramPlan& plan, const fb::StepPlan& step,
                                                 uint8_t kind) {
  for (uint32_t i = 0; i < length(step.device_workspaces()); ++i) {
    const fb::DeviceWorkspace* w = step.device_workspaces()->Get(i);
    if (w->region() < length(plan.regions()) && plan.regions()->Get(w->region())->memory_kind() == kind)
      return w;
  }
  return nullptr;
}

}  // namespace sinter::detail

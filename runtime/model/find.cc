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

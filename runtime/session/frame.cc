#include "runtime/session/frame.h"

#include "runtime/session/entry.h"

namespace sinter::detail {

Frame Frame::body(uint32_t s, uint32_t number) const {
  Frame body;
  body.entry = entry;
  body.program = entry->model.state()->root->programs()->Get(number);
  body.plan = find_plan(*entry->profile, number);
  body.index = number;
  body.parent = this;
  body.owner = s;
  body.shape = control_shape(step(s));
  for (uint32_t r = 0; r < length(body.plan->regions()); ++r) {
    const uint8_t kind = body.plan->regions()->Get(r)->memory_kind();
    if (kind == 0) {
      body.regions[r] = workspace_of(s);
      continue;
    }
    const fb::DeviceWorkspace& there = *find_device_workspace(*plan, step_plan(s), kind);  // verified
    body.kinds[r] = kinds[there.region()];
    if (std::byte* region = regions[there.region()]; region != nullptr)
      body.regions[r] = region + there.offset();
  }
  return body;
}

std::byte* Frame::address(const fb::Placement& p) const {
  std::byte* region = regions[p.region()];
  if (region == nullptr) return nullptr;
  std::byte* bound = parent == nullptr ? entry->bound_address(p) : nullptr;
  return bound != nullptr ? bound : region + p.offset();
}

std::byte* Frame::workspace_of(uint32_t s) const {
  const fb::StepPlan& planned = step_plan(s);
  if (planned.workspace_bytes() == 0) return nullptr;  // its region is not verified
  std::byte* region = regions[planned.workspace_region()];
  return region != nullptr ? region + planned.workspace_offset() : nullptr;
}

bool Frame::holds_state(uint32_t region) const {
  for (uint32_t i = 0; i < length(plan->placements()); ++i) {
    const fb::Placement& p = *plan->placements()->Get(i);
    if (p.region() == region && value(p.value()).kind() == fb::ValueKind::State) return true;
  }
  return false;
}

uint32_t Frame::outer_of(uint32_t v) const {
  uint32_t i = shape.own;
  while (program->inputs()->Get(i)->value() != v) ++i;
  return static_cast<uint32_t>(items(parent->step(owner).inputs())[shape.captured + (i - shape.own)]);
}

uint32_t Frame::offset_of(const void* part) const {
  return static_cast<uint32_t>(static_cast<const std::byte*>(part) - entry->model.state()->flatbuffer);
}

Operand Frame::operand_of(uint32_t v) const {
  const fb::Value& value = this->value(v);
  Operand operand;
  operand.dtype = static_cast<DType>(value.dtype());
  operand.rank = static_cast<uint8_t>(length(value.dims()));
  if (operand.rank > 0) operand.dims = offset_of(value.dims()->Data());
  if (value.kind() == fb::ValueKind::Constant) {
    const ModelState& model = *entry->model.state();
    const auto& constant = *model.root->constants()->Get(static_cast<uint32_t>(value.constant()));
    operand.data = const_cast<std::byte*>(constant_data(model, constant));
    operand.constant = true;
    return operand;
  }
  if (value.kind() == fb::ValueKind::Prepared) {
    operand.data = prepared != nullptr ? prepared[v - first_prepared()] : nullptr;
    operand.constant = true;
    return operand;
  }
  if (const fb::Placement* p = find_placement(*plan, v); p != nullptr) {
    if (length(p->strides()) > 0) operand.strides = offset_of(p->strides()->Data());
    operand.data = address(*p);
    operand.memory = parent == nullptr ? entry->memory_of(*p) : kinds[p->region()];
    return operand;
  }
  return parent->operand_of(outer_of(v));
}

TensorView Frame::view_of(uint32_t v) const {
  return detail::view_of(operand_of(v), entry->model.state()->flatbuffer);
}
TensorView Frame::view_of(int32_t v) const {
  return v >= 0 ? view_of(static_cast<uint32_t>(v)) : TensorView{};
}

OpCall Frame::make_call(const fb::Step& step, TensorView* views, void* attributes) const {
  const auto ins = items(step.inputs()), outs = items(step.outputs());
  for (size_t i = 0; i < ins.size(); ++i) views[i] = view_of(ins[i]);
  for (size_t i = 0; i < outs.size(); ++i) views[ins.size() + i] = view_of(outs[i]);
  (void)decode_attrs(*entry->model.state(), step, attributes);  // verified when the model was opened
  return {step_op(step), attributes, {views, ins.size()}, {views + ins.size(), outs.size()}};
}

int64_t Frame::constant_of(int32_t v) const {
  const auto number = static_cast<uint32_t>(v);
  const fb::Value& value = this->value(number);
  if (value.kind() == fb::ValueKind::Constant) return value.constant();
  if (value.kind() != fb::ValueKind::Input || parent == nullptr || find_placement(*plan, number) != nullptr)
    return -1 - (static_cast<int64_t>(index) << 32) - v;
  return parent->constant_of(static_cast<int32_t>(outer_of(number)));
}

}  // namespace sinter::detail

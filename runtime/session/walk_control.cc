// The walk over If and Loop: their bodies, and the copies between these and their owner.
#include "runtime/session/creator.h"

namespace sinter::detail {

Frame Creator::body_of(const Frame& owner, uint32_t s, uint32_t program) const {
  Frame frame;
  frame.program = model_.state()->root->programs()->Get(program);
  frame.plan = find_plan(*profile_, program);
  frame.index = program;
  frame.parent = &owner;
  frame.owner = owner.program->steps()->Get(s);
  frame.owner_index = s;
  frame.shape = control_shape(*frame.owner);
  const fb::StepPlan& plan = *owner.plan->steps()->Get(s);
  for (uint32_t r = 0; r < length(frame.plan->regions()); ++r) {
    const uint8_t kind = frame.plan->regions()->Get(r)->memory_kind();
    if (kind == 0) {
      frame.regions[r] = workspace_of(owner, plan);
      continue;
    }
    const fb::DeviceWorkspace& there = *find_device_workspace(*owner.plan, plan, kind);  // verified
    frame.kinds[r] = owner.kinds[there.region()];
    if (building() && !packs_only_) frame.regions[r] = owner.regions[there.region()] + there.offset();
  }
  return frame;
}

Status Creator::walk_body(Frame& owner, uint32_t s, uint32_t program, Frame& frame, StepList& measured) {
  StepList* list = control_.allocate_array<StepList>(1);
  SINTER_RETURN_UNLESS(!building() || list != nullptr, kDisagree);
  frame = body_of(owner, s, program);
  frame.steps = building() ? list : &measured;
  if (building()) {
    list->next = session_->main.next;
    session_->main.next = list;
  }
  return walk(frame);
}

Status Creator::walk_control(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  StepParts parts;
  SINTER_RETURN_IF_ERROR(take_parts(step, CallUse::kUnused, &parts));
  if (building()) {
    describe(frame, s, CallUse::kUnused, RunStep::kOneThread, parts, run);
    session_->host_takes_part = true;
  }
  return step_op(step) == Op::kIf ? walk_if(frame, s, run) : walk_loop(frame, s, run);
}

Status Creator::walk_if(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  IfState* state = control_.allocate_array<IfState>(1);
  for (uint32_t b = 0; b < 2; ++b) {
    Frame branch;
    StepList measured;
    SINTER_RETURN_IF_ERROR(walk_body(frame, s, items(step.subprograms())[b], branch, measured));
    const auto outs = items(step.outputs());
    CopyItem* copies = control_.allocate_array<CopyItem>(outs.size());
    if (!building()) continue;
    SINTER_RETURN_UNLESS(state != nullptr && copies != nullptr, kDisagree);
    state->steps[b] = branch.steps;
    state->results[b] = {copies, outs.size()};
    for (uint32_t i = 0; i < outs.size(); ++i)
      if (outs[i] >= 0)
        copies[i] =
            copy_item(view_of(branch, branch.program->outputs()->Get(i)->value()), view_of(frame, outs[i]));
  }
  if (!building()) return ok_status();
  state->session = session_;
  state->condition = run->operands[0].data;
  run->run = run_if;
  run->state = state;
  return ok_status();
}

Status Creator::walk_loop(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  LoopState* state = control_.allocate_array<LoopState>(1);
  Frame body;
  StepList measured;
  SINTER_RETURN_IF_ERROR(walk_body(frame, s, items(step.subprograms())[0], body, measured));
  const uint32_t carried = control_shape(step).carried;
  const auto outs = items(step.outputs());
  const auto scans = static_cast<uint32_t>(outs.size()) - carried - 1;
  CopyItem* copies = control_.allocate_array<CopyItem>(3 * size_t{carried} + scans);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(state != nullptr && copies != nullptr, kDisagree);

  const auto parameter = [&](uint32_t i) { return view_of(body, body.program->inputs()->Get(i)->value()); };
  const auto result = [&](uint32_t i) { return view_of(body, body.program->outputs()->Get(i)->value()); };
  const auto ins = items(step.inputs());
  state->session = session_;
  state->trip_count = run->operands[0].data;
  state->condition = run->operands[1].data;
  state->max_trips = items(step.ints())[0];  // max_trips, carried
  state->steps = body.steps;
  state->iteration = parameter(0).data;
  state->condition_parameter = parameter(1).data;
  state->condition_result = result(0).data;
  state->initial = {copies, carried};
  state->carry = {copies + carried, carried};
  state->finals = {copies + 2 * size_t{carried}, carried};
  state->scanned = {copies + 3 * size_t{carried}, scans};
  for (uint32_t i = 0; i < carried; ++i) {
    const TensorView p = parameter(2 + i);
    state->initial[i] = copy_item(view_of(frame, ins[2 + i]), p);
    state->carry[i] = copy_item(result(1 + i), p);
    if (outs[i] >= 0) state->finals[i] = copy_item(p, view_of(frame, outs[i]));
  }
  for (uint32_t i = 0; i < scans; ++i)
    if (outs[carried + i] >= 0)
      state->scanned[i] = copy_item(result(1 + carried + i), view_of(frame, outs[carried + i]));
  state->trips = run->operands[ins.size() + outs.size() - 1].data;
  run->run = run_loop;
  run->state = state;
  return ok_status();
}

}  // namespace sinter::detail

// The walk over If and Loop: their bodies, and the copies between these and their owner.
#include "runtime/session/session_creator.h"

namespace sinter::detail {

Status SessionCreator::walk_body(const Frame& owner, uint32_t s, uint32_t program, Frame& body,
                                 StepList& measured) {
  StepList* list = nullptr;
  SINTER_RETURN_IF_ERROR(memory_.take(1, &list));
  body = owner.body(s, program);
  body.steps = building() ? list : &measured;
  if (building()) {
    list->next = session_->main.next;
    session_->main.next = list;
  }
  return walk(body);
}

Status SessionCreator::walk_control(Frame& frame, uint32_t s, RunStep* run) {
  SINTER_RETURN_IF_ERROR(lay_out(frame, s, CallUse::kUnused, RunStep::kOneThread, run));
  if (building()) session_->host_takes_part = true;
  return step_op(frame.step(s)) == Op::kIf ? walk_if(frame, s, run) : walk_loop(frame, s, run);
}

Status SessionCreator::walk_if(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = frame.step(s);
  IfState* state = memory_.control.allocate_array<IfState>(1);
  for (uint32_t b = 0; b < 2; ++b) {
    Frame branch;
    StepList measured;
    SINTER_RETURN_IF_ERROR(walk_body(frame, s, items(step.subprograms())[b], branch, measured));
    const auto outs = items(step.outputs());
    CopyItem* copies = memory_.control.allocate_array<CopyItem>(outs.size());
    if (!building()) continue;
    SINTER_RETURN_UNLESS(state != nullptr && copies != nullptr, kDisagree);
    state->steps[b] = branch.steps;
    state->results[b] = {copies, outs.size()};
    for (uint32_t i = 0; i < outs.size(); ++i)
      if (outs[i] >= 0)
        copies[i] =
            copy_item(branch.view_of(branch.program->outputs()->Get(i)->value()), frame.view_of(outs[i]));
  }
  if (!building()) return ok_status();
  state->session = session_;
  state->condition = run->operands[0].data;
  run->run = run_if;
  run->state = state;
  return ok_status();
}

Status SessionCreator::walk_loop(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = frame.step(s);
  LoopState* state = memory_.control.allocate_array<LoopState>(1);
  Frame body;
  StepList measured;
  SINTER_RETURN_IF_ERROR(walk_body(frame, s, items(step.subprograms())[0], body, measured));
  const uint32_t carried = control_shape(step).carried;
  const auto outs = items(step.outputs());
  const auto scans = static_cast<uint32_t>(outs.size()) - carried - 1;
  CopyItem* copies = memory_.control.allocate_array<CopyItem>(3 * size_t{carried} + scans);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(state != nullptr && copies != nullptr, kDisagree);

  const auto parameter = [&](uint32_t i) { return body.view_of(body.program->inputs()->Get(i)->value()); };
  const auto result = [&](uint32_t i) { return body.view_of(body.program->outputs()->Get(i)->value()); };
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
    state->initial[i] = copy_item(frame.view_of(ins[2 + i]), p);
    state->carry[i] = copy_item(result(1 + i), p);
    if (outs[i] >= 0) state->finals[i] = copy_item(p, frame.view_of(outs[i]));
  }
  for (uint32_t i = 0; i < scans; ++i)
    if (outs[carried + i] >= 0)
      state->scanned[i] = copy_item(result(1 + carried + i), frame.view_of(outs[carried + i]));
  state->trips = run->operands[ins.size() + outs.size() - 1].data;
  run->run = run_loop;
  run->state = state;
  return ok_status();
}

}  // namespace sinter::detail

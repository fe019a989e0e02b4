// A step that is not an If or Loop, in both passes.
#include <algorithm>

#include "runtime/session/session_creator.h"

namespace sinter::detail {
namespace {

Bring bring_of(const Choice& choice) {
  const bool packs = choice.from == Choice::Packed::kHere;
  return {choice.packed, choice.from == Choice::Packed::kNone || packs ? 0 : choice.packing_inputs,
          choice.prepared + (packs && choice.memory == 0 ? choice.packed_bytes : 0), choice.scratch};
}

// Fills in the addresses of prepared values, which are known when a step has been prepared.
void describe_prepared(const Frame& frame, const fb::Step& step, RunStep* run) {
  const auto ins = items(step.inputs());
  for (size_t i = 0; frame.kept != nullptr && i < ins.size(); ++i) {
    if (ins[i] < 0) continue;
    const auto v = static_cast<uint32_t>(ins[i]);
    if (frame.value(v).kind() != fb::ValueKind::Prepared) continue;
    std::byte* data = frame.operand_of(v).data;
    (run->call == CallUse::kKept ? run->kept->call.inputs[i].data : run->operands[i].data) = data;
  }
}

}  // namespace

Status SessionCreator::lay_out(const Frame& frame, uint32_t s, CallUse use, uint8_t pool, RunStep* run) {
  const fb::Step& step = frame.step(s);
  const uint32_t inputs = length(step.inputs()), outputs = length(step.outputs()), count = inputs + outputs;
  const Op op = step_op(step);
  const bool kept = use == CallUse::kKept, keeps_attributes = kept || attrs_bytes(op) <= kKeptAttrBytes;
  KeptCall* call = nullptr;
  TensorView* views = nullptr;
  Operand* operands = nullptr;
  if (kept) {
    SINTER_RETURN_IF_ERROR(memory_.take(1, &call));
    SINTER_RETURN_IF_ERROR(memory_.take(count, &views));
  } else {
    most_operands_ = std::max(most_operands_, count);
    SINTER_RETURN_IF_ERROR(memory_.take(count, &operands));
  }
  void* attributes = memory_.control.allocate(keeps_attributes ? attrs_bytes(op) : 0, 8);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(attributes != nullptr, kDisagree);
  new (run) RunStep();
  run->step = s;
  run->op = op;
  run->call = use;
  run->pool = pool;
  run->inputs = inputs, run->outputs = outputs;
  run->workspace = frame.workspace_of(s);
  run->workspace_bytes = static_cast<size_t>(frame.step_plan(s).workspace_bytes());
  run->keeps_attributes = keeps_attributes;
  if (keeps_attributes)
    run->attributes.kept = attributes;
  else
    run->attributes.table = frame.offset_of(&step);
  if (kept) {
    run->kept = call;
    call->call = frame.make_call(step, views, attributes);
    call->context = {{run->workspace, run->workspace_bytes}, session_->threads_of(pool)};
    return ok_status();
  }
  run->operands = operands;
  if (keeps_attributes) (void)decode_attrs(*entry_.model.state(), step, attributes);
  for (const auto* list : {step.inputs(), step.outputs()})
    for (const int32_t v : items(list))
      *operands++ = v >= 0 ? frame.operand_of(static_cast<uint32_t>(v)) : Operand{};
  return ok_status();
}

// Finds what computes the step, and how it packs constants.
[[gnu::noinline]] Status SessionCreator::choose_step(const Frame& frame, uint32_t s, Choice* choice,
                                                     Packing* packing) {
  StepRoom room;
  const OpCall call = frame.make_call(frame.step(s), &room);
  Status refusal;
  SINTER_RETURN_IF_ERROR(chooser_.choose(frame, s, call, choice, packing, &refusal));
  return choice->memory != 0 ? ok_status() : chooser_.note_fallback(frame, s, *choice, refusal);
}

[[gnu::noinline]] Status SessionCreator::measure_step(Frame& frame, uint32_t s, Choice* noted) {
  const fb::Step& step = frame.step(s);
  Choice choice;
  Packing packing;
  SINTER_RETURN_IF_ERROR(choose_step(frame, s, &choice, &packing));
  SINTER_RETURN_IF_ERROR(packings_.find(frame, s, packing, &choice));
  const uint32_t without = choice.from == Choice::Packed::kShared ? choice.packed & choice.packing_inputs : 0;
  SINTER_RETURN_IF_ERROR(frame.check_present(step, without));
  SINTER_RETURN_IF_ERROR(lay_out(frame, s, choice.call, choice.pool, nullptr));
  Brought brought;
  SINTER_RETURN_IF_ERROR(prepared_values_.bring(frame, step, bring_of(choice), &brought));
  std::span<const std::byte> packed;
  std::span<std::byte> fresh;
  SINTER_RETURN_IF_ERROR(packings_.take(frame, s, choice, &packed, &fresh));
  memory_.prepared.allocate(choice.prepared, kBufferAlignment);
  if (choice.memory != 0) {
    devices_.of(choice.memory).prepared.allocate(choice.device_prepared, kBufferAlignment);
    devices_.of(choice.memory).staging.allocate(choice.staging, kBufferAlignment);
  }
  if (noted != nullptr) new (noted) Choice(choice);
  return ok_status();
}

// The choice is a copy, because it was noted in place of `*run`.
[[gnu::noinline]] Status SessionCreator::build_step(Frame& frame, uint32_t s, Choice choice, RunStep* run) {
  const fb::Step& step = frame.step(s);
  SINTER_RETURN_IF_ERROR(lay_out(frame, s, choice.call, choice.pool, run));
  Brought brought;
  SINTER_RETURN_IF_ERROR(prepared_values_.bring(frame, step, bring_of(choice), &brought));
  std::span<const std::byte> packed;
  std::span<std::byte> fresh;
  SINTER_RETURN_IF_ERROR(packings_.take(frame, s, choice, &packed, &fresh));
  SINTER_RETURN_IF_ERROR(prepare_step(frame, step, choice, brought, packed, fresh, run));
  // Values in scratch memory are dropped; kept ones have their address by now.
  describe_prepared(frame, step, run);
  return ok_status();
}

// Packs the constants in `fresh`, if there are any, and has the backend prepare the step.
[[gnu::noinline]] Status SessionCreator::prepare_step(const Frame& frame, const fb::Step& step,
                                                      const Choice& choice, const Brought& brought,
                                                      std::span<const std::byte> packed,
                                                      std::span<std::byte> fresh, RunStep* run) {
  StepRoom room;
  const OpCall call = frame.make_call(step, &room);
  ThreadPool* threads = session_->threads_of(choice.pool);
  brought.give(call);
  if (!fresh.empty()) SINTER_RETURN_IF_ERROR(packings_.pack(choice, call, fresh, brought.scratch, threads));
  for (const auto* views : {&call.inputs, &call.outputs})
    for (const TensorView& v : *views)
      session_->host_takes_part |= v.present() && !v.constant && v.memory == 0;
  std::byte nothing[1];
  BumpArena own, on_device({nothing, 0}), staging({nothing, 0});
  SINTER_RETURN_IF_ERROR(take_part(memory_.prepared, choice.prepared, &own));
  DeviceQueue* queue = nullptr;
  if (choice.memory != 0) {
    Devices::Block& block = devices_.of(choice.memory);
    queue = block.queue;
    SINTER_RETURN_IF_ERROR(take_part(block.prepared, choice.device_prepared, &on_device));
    if (choice.staging > 0) SINTER_RETURN_IF_ERROR(take_part(block.staging, choice.staging, &staging));
  }
  PreparedStep prepared;
  SINTER_RETURN_IF_ERROR(entry_.backends[choice.slot]->prepare(call,
                                                               {own,
                                                                on_device,
                                                                {run->workspace, run->workspace_bytes},
                                                                threads,
                                                                static_cast<int32_t>(run->step),
                                                                packed,
                                                                {brought.scratch, choice.scratch},
                                                                queue,
                                                                &staging,
                                                                frame.index},
                                                               &prepared));
  run->backend = chooser_.index(choice);
  run->run = prepared.run;
  run->state = prepared.state;
  SINTER_RETURN_UNLESS(
      run->run != nullptr && !own.exhausted() && !on_device.exhausted() && !staging.exhausted(),
      error(Code::kInternal, "a backend prepared less than a step"));
  return ok_status();
}

}  // namespace sinter::detail

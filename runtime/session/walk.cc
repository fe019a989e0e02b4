// The walk over an entry program and what it contains, done twice: with measuring arenas, then with memory.
// Both times the same allocations happen in the same order.
#include <algorithm>
#include <cstring>

#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

uint32_t steps_to_run(const fb::ProgramPlan& plan) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < length(plan.steps()); ++i) n += !plan.steps()->Get(i)->elided();
  return n;
}

}  // namespace

std::byte* Creator::address(const Frame& frame, const fb::Placement& p) const {
  if (!building() || packs_only_) return nullptr;
  if (frame.parent == nullptr && bound_count_ > 0) {
    const fb::Placement* root = &p;
    while (root->alias_of() >= 0) root = find_placement(*frame.plan, static_cast<uint32_t>(root->alias_of()));
    for (size_t i = 0; i < bound_count_; ++i)
      if (bound_[i] == root->value())
        return options_.bindings[i].buffer.data() + (p.offset() - root->offset());
  }
  return frame.regions[p.region()] + p.offset();
}

std::byte* Creator::workspace_of(const Frame& frame, const fb::StepPlan& plan) const {
  // Without bytes the region is not verified.
  if (!building() || packs_only_ || plan.workspace_bytes() == 0) return nullptr;
  return frame.regions[plan.workspace_region()] + plan.workspace_offset();
}

uint32_t Creator::offset_of(const void* part) const {
  return static_cast<uint32_t>(static_cast<const std::byte*>(part) - model_.state()->flatbuffer);
}

// The owner's operand that the program captures as this value.
uint32_t Creator::outer_of(const Frame& frame, uint32_t v) const {
  uint32_t i = frame.shape.own;
  while (frame.program->inputs()->Get(i)->value() != v) ++i;
  return static_cast<uint32_t>(items(frame.owner->inputs())[frame.shape.captured + (i - frame.shape.own)]);
}

Operand Creator::operand_of(const Frame& frame, uint32_t v) const {
  const fb::Value& value = *frame.program->values()->Get(v);
  Operand operand;
  operand.dtype = static_cast<DType>(value.dtype());
  operand.rank = static_cast<uint8_t>(length(value.dims()));
  if (operand.rank > 0) operand.dims = offset_of(value.dims()->Data());
  if (value.kind() == fb::ValueKind::Constant) {
    const auto& constant = *model_.state()->root->constants()->Get(static_cast<uint32_t>(value.constant()));
    operand.data = const_cast<std::byte*>(constant_data(*model_.state(), constant));
    operand.constant = true;
    return operand;
  }
  if (value.kind() == fb::ValueKind::Prepared) {
    const auto first = items(frame.program->prepare()->Get(0)->outputs())[0];
    operand.data = frame.prepared != nullptr ? frame.prepared[v - static_cast<uint32_t>(first)] : nullptr;
    operand.constant = true;
    return operand;
  }
  if (const fb::Placement* p = find_placement(*frame.plan, v); p != nullptr) {
    if (length(p->strides()) > 0) operand.strides = offset_of(p->strides()->Data());
    operand.data = address(frame, *p);
    operand.memory = memory_of(frame, *p);
    return operand;
  }
  return operand_of(*frame.parent, outer_of(frame, v));
}

TensorView Creator::view_of(const Frame& frame, uint32_t v) const {
  return detail::view_of(operand_of(frame, v), model_.state()->flatbuffer);
}
TensorView Creator::view_of(const Frame& frame, int32_t v) const {
  return v >= 0 ? view_of(frame, static_cast<uint32_t>(v)) : TensorView{};
}

OpCall Creator::make_call(const Frame& frame, const fb::Step& step, TensorView* views,
                          void* attributes) const {
  const auto ins = items(step.inputs()), outs = items(step.outputs());
  for (size_t i = 0; i < ins.size(); ++i) views[i] = view_of(frame, ins[i]);
  for (size_t i = 0; i < outs.size(); ++i) views[ins.size() + i] = view_of(frame, outs[i]);
  // Verified when the model was opened.
  (void)decode_attrs(*model_.state(), step, attributes);
  return {step_op(step), attributes, {views, ins.size()}, {views + ins.size(), outs.size()}};
}

CopyItem Creator::copy_item(const TensorView& from, const TensorView& to) const {
  return {from.data, to.data, static_cast<size_t>(from.dense_bytes()), queue_of(to)};
}

Status Creator::walk_entry() {
  const fb::Program& program = *program_;
  StepList list;
  if (!building()) {  // create() has taken these, in this order
    control_.allocate_array<SessionState>(1);
    SINTER_RETURN_IF_ERROR(take_pools());
    control_.allocate_array<DeviceState>(device_count_);
  }

  Frame frame = entry_frame();
  frame.steps = building() ? &session_->main : &list;
  SINTER_RETURN_IF_ERROR(walk(frame));

  const uint32_t inputs = length(program.inputs()), outputs = length(program.outputs());
  const uint32_t named = length(program.states());
  Operand* ports = control_.allocate_array<Operand>(size_t{inputs} + outputs + named);
  uint32_t states = 0, updates = 0, length_count = 0, given_count = 0;
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    if (value.kind() == fb::ValueKind::State) ++states, updates += value.update() >= 0;
  }
  for (uint32_t i = 0; i < outputs; ++i)
    length_count += length(program.values()->Get(program.outputs()->Get(i)->value())->bounded_dims());
  for (uint32_t i = 0; i < inputs; ++i)
    given_count += length(program.values()->Get(program.inputs()->Get(i)->value())->bounded_dims());
  CopyItem* copies = control_.allocate_array<CopyItem>(size_t{states} + updates);
  OutputLength* lengths = control_.allocate_array<OutputLength>(length_count);
  GivenAxis* given = control_.allocate_array<GivenAxis>(given_count);
  TensorView* views =
      control_.allocate_array<TensorView>(most_operands_ > kStackOperands ? most_operands_ : 0);
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(
      ports != nullptr && copies != nullptr && lengths != nullptr && given != nullptr && views != nullptr,
      kDisagree);
  session_->ports = ports;
  session_->inputs = inputs, session_->outputs = outputs, session_->named_states = named;
  for (uint32_t i = 0; i < named; ++i)
    ports[inputs + outputs + i] = operand_of(frame, program.states()->Get(i)->value());
  session_->lengths = lengths, session_->length_count = length_count;
  session_->given = given, session_->given_count = given_count;
  session_->copies = copies;
  session_->views = views;
  for (uint32_t i = 0; i < inputs + outputs; ++i) {
    const fb::Port& port = i < inputs ? *program.inputs()->Get(i) : *program.outputs()->Get(i - inputs);
    ports[i] = operand_of(frame, port.value());
    if (port.dims() != nullptr) {  // the address of a port's value, as the caller has it
      ports[i].rank = static_cast<uint8_t>(port.dims()->size());
      ports[i].dims = offset_of(port.dims()->Data());
      ports[i].strides = 0;
    }
    const auto* bounded = i < inputs ? nullptr : program.values()->Get(port.value())->bounded_dims();
    for (uint32_t e = 0; e < length(bounded); ++e) {
      const fb::BoundedDim& dim = *bounded->Get(e);
      const Operand length = operand_of(frame, static_cast<uint32_t>(dim.length()));
      *lengths++ = {length.memory == 0 ? length.data : nullptr, i - inputs, dim.axis()};
    }
  }
  describe_given(frame, given);
  CopyItem* end = copies;
  const auto add = [&](int device, bool update) {
    CopyItem* begin = end;
    end = describe_states(frame, device, update, end);
    return std::span<const CopyItem>(begin, end);
  };
  session_->states = static_cast<uint32_t>(add(-1, false).size());
  session_->updates = static_cast<uint32_t>(add(-1, true).size());
  for (uint32_t d = 0; d < device_count_; ++d) {
    session_->devices[d].initial = add(static_cast<int>(d), false);
    session_->devices[d].updates = add(static_cast<int>(d), true);
  }
  return ok_status();
}

// The initial values or the updates of the states on a device or (-1) in host memory.
CopyItem* Creator::describe_states(const Frame& frame, int device, bool updates, CopyItem* items) const {
  const uint8_t kind = device >= 0 ? devices_[device].kind : uint8_t{0};
  for (uint32_t v = 0; v < length(frame.program->values()); ++v) {
    const fb::Value& value = *frame.program->values()->Get(v);
    if (value.kind() != fb::ValueKind::State || (updates && value.update() < 0)) continue;
    const TensorView state = view_of(frame, v);
    if (state.memory != kind) continue;
    if (updates) {
      *items++ = copy_item(view_of(frame, static_cast<uint32_t>(value.update())), state);
      continue;
    }
    *items = {nullptr, state.data, static_cast<size_t>(state.dense_bytes()), queue_of(state)};
    if (value.initial() >= 0)
      items->from = constant_data(
          *model_.state(), *model_.state()->root->constants()->Get(static_cast<uint32_t>(value.initial())));
    ++items;
  }
  return items;
}

// Where the choice for the step at `at` in the control structures is noted; null if memory ends before.
Creator::Choice* Creator::note(size_t at) const {
  return at <= memory_.size() && memory_.size() - at >= sizeof(RunStep)
             ? reinterpret_cast<Choice*>(memory_.data() + at)
             : nullptr;
}

Status Creator::walk(Frame& frame) {
  const uint32_t count = steps_to_run(*frame.plan) + extra_steps(frame);
  size_t at = align_up(control_.used(), alignof(RunStep));
  // Not initialised: the first pass has left notes here.
  auto* run = static_cast<RunStep*>(control_.allocate_raw<RunStep>(count));
  SINTER_RETURN_UNLESS(!building() || run != nullptr, kDisagree);
  uint64_t kept[kTracked / 64] = {};
  if (length(frame.program->prepare()) > 0) SINTER_RETURN_IF_ERROR(walk_prepare(frame, kept));
  frame.steps->steps = run;
  frame.steps->program = frame.index;
  Waits waits;
  int group = -1;  // the device that computed the last step
  for (uint32_t s = 0; s < length(frame.program->steps()); ++s) {
    const fb::Step& step = *frame.program->steps()->Get(s);
    const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
    if (plan.elided()) continue;
    const StepPlace place = place_of(frame, step, plan);
    const uint32_t first = waits.before(place.device, place.transfer);
    SINTER_RETURN_IF_ERROR(end_group(&group, first != 0 ? -1 : place.device));
    add_extra(first, run_wait, frame, &at, &run);
    group = place.device;
    waits.started |= devices_of(frame, step, plan);
    const Status status = is_control(step) ? walk_control(frame, s, run)
                          : building()     ? build_step_at(frame, s, place, at, run)
                                           : measure_step_at(frame, s, place, at);
    if (!status.ok()) return status.at_step(s, frame.index);
    at += sizeof(RunStep);
    // destroy() releases those that are complete, should a later one fail.
    if (building()) fuse(frame, run), ++run, ++frame.steps->count;
  }
  SINTER_RETURN_IF_ERROR(end_group(&group, -1));
  if (frame.parent != nullptr) {
    add_extra(waits.transfers, run_wait, frame, &at, &run);
  } else {
    add_extra(with_states(true), run_updates, frame, &at, &run);
    // Those that have states may have been reset.
    add_extra(waits.started | with_states(false), run_wait, frame, &at, &run);
  }
  frame.kept = nullptr;
  return ok_status();
}

Status Creator::take_parts(const fb::Step& step, CallUse use, StepParts* parts) {
  const uint32_t count = length(step.inputs()) + length(step.outputs());
  const size_t bytes = attrs_bytes(step_op(step));
  const bool kept = use == CallUse::kKept;
  if (!kept) most_operands_ = std::max(most_operands_, count);
  if (kept) {
    parts->kept = control_.allocate_array<KeptCall>(1);
    parts->views = control_.allocate_array<TensorView>(count);
  } else {
    parts->operands = control_.allocate_array<Operand>(count);
  }
  parts->attributes = control_.allocate(kept || bytes <= kKeptAttrBytes ? bytes : 0, 8);
  SINTER_RETURN_UNLESS(!building() || ((kept ? parts->kept != nullptr && parts->views != nullptr
                                             : parts->operands != nullptr) &&
                                       parts->attributes != nullptr),
                       kDisagree);
  return ok_status();
}

// The parts of a step that is not yet prepared.
void Creator::describe(const Frame& frame, uint32_t s, CallUse use, uint8_t pool, const StepParts& parts,
                       RunStep* run) const {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  new (run) RunStep();
  run->step = s;
  run->op = step_op(step);
  run->call = use;
  run->pool = pool;
  run->inputs = length(step.inputs());
  run->outputs = length(step.outputs());
  run->workspace = workspace_of(frame, plan);
  run->workspace_bytes = static_cast<size_t>(plan.workspace_bytes());
  if (use == CallUse::kKept) {
    run->kept = parts.kept;
    run->attributes.kept = parts.attributes;
    run->keeps_attributes = true;
    parts.kept->call = make_call(frame, step, parts.views, parts.attributes);
    parts.kept->context = {{run->workspace, run->workspace_bytes}, session_->threads_of(run->pool)};
    return;
  }
  run->operands = parts.operands;
  run->keeps_attributes = attrs_bytes(run->op) <= kKeptAttrBytes;
  if (run->keeps_attributes) {
    (void)decode_attrs(*model_.state(), step, parts.attributes);
    run->attributes.kept = parts.attributes;
  } else {
    run->attributes.table = offset_of(&step);
  }
  Operand* operands = parts.operands;
  const auto fill = [&](std::span<const int32_t> values) {
    for (const int32_t v : values)
      *operands++ = v >= 0 ? operand_of(frame, static_cast<uint32_t>(v)) : Operand{};
  };
  fill(items(step.inputs()));
  fill(items(step.outputs()));
}

// The addresses of prepared values, which are known when a step has been prepared.
void Creator::describe_prepared(const Frame& frame, const fb::Step& step, RunStep* run) const {
  const auto ins = items(step.inputs());
  for (size_t i = 0; frame.kept != nullptr && i < ins.size(); ++i) {
    if (ins[i] < 0) continue;
    const auto v = static_cast<uint32_t>(ins[i]);
    if (frame.program->values()->Get(v)->kind() != fb::ValueKind::Prepared) continue;
    std::byte* data = operand_of(frame, v).data;
    (run->call == CallUse::kKept ? run->kept->call.inputs[i].data : run->operands[i].data) = data;
  }
}

// Where the packed constants of a step are; `*fresh`: the same, if this step is to pack them. The order is
// that of both passes.
Status Creator::take_packed(const Frame& frame, uint32_t s, const Choice& choice,
                            std::span<const std::byte>* packed, std::span<std::byte>* fresh) {
  if (choice.from == Packed::kNone) return ok_status();
  if (choice.from == Packed::kShared) return *packed = {choice.shared, choice.packed_bytes}, ok_status();
  auto* note = control_.allocate_array<PackedAt>(1);
  const bool here = choice.from == Packed::kHere;
  void* at =
      here ? packed_arena(choice).allocate(choice.packed_bytes, kBufferAlignment) : packed_earlier(choice);
  if (here && choice.device < 0) packed_bytes_ += choice.packed_bytes;
  if (!building()) return ok_status();
  SINTER_RETURN_UNLESS(note != nullptr && at != nullptr, kDisagree);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), choice.packed_bytes);
  note_packed(frame, s, bytes.data(), note);
  *packed = bytes;
  if (here) *fresh = bytes;
  return ok_status();
}

// Measuring: what computes the step, and how it packs constants.
[[gnu::noinline]] Status Creator::choose_step(const Frame& frame, uint32_t s, StepPlace place, Choice* choice,
                                              Packing* packing) {
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  StepRoom room;
  const OpCall call = make_call(frame, *frame.program->steps()->Get(s), &room);
  Status refusal;
  SINTER_RETURN_IF_ERROR(choose_at(place, call, plan, choice, packing, &refusal));
  if (place.device >= 0) return ok_status();
  return note_fallback(frame, s, plan, *choice, refusal);
}

[[gnu::noinline]] Status Creator::measure_step_at(Frame& frame, uint32_t s, StepPlace place, size_t at) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  Choice choice;
  Packing packing;
  SINTER_RETURN_IF_ERROR(choose_step(frame, s, place, &choice, &packing));
  SINTER_RETURN_IF_ERROR(find_packed(frame, s, packing, &choice));
  const uint32_t without = choice.from == Packed::kShared ? choice.packed & choice.packing_inputs : 0;
  SINTER_RETURN_IF_ERROR(check_present(frame, step, without));
  StepParts parts;
  SINTER_RETURN_IF_ERROR(take_parts(step, choice.call, &parts));
  Brought brought;
  SINTER_RETURN_IF_ERROR(bring_operands(frame, step, bring_of(choice), &brought));
  std::span<const std::byte> packed;
  std::span<std::byte> fresh;
  SINTER_RETURN_IF_ERROR(take_packed(frame, s, choice, &packed, &fresh));
  prepared_.allocate(choice.prepared, kBufferAlignment);
  if (place.device >= 0) {
    devices_[place.device].prepared.allocate(choice.device_prepared, kBufferAlignment);
    devices_[place.device].staging.allocate(choice.staging, kBufferAlignment);
  }
  if (Choice* noted = note(at); noted != nullptr) new (noted) Choice(choice);
  return ok_status();
}

[[gnu::noinline]] Status Creator::build_step_at(Frame& frame, uint32_t s, StepPlace place, size_t at,
                                                RunStep* run) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  SINTER_RETURN_UNLESS(note(at) == static_cast<void*>(run), kDisagree);
  const Choice choice = *note(at);
  StepParts parts;
  SINTER_RETURN_IF_ERROR(take_parts(step, choice.call, &parts));
  describe(frame, s, choice.call, choice.pool, parts, run);
  Brought brought;
  SINTER_RETURN_IF_ERROR(bring_operands(frame, step, bring_of(choice), &brought));
  std::span<const std::byte> packed;
  std::span<std::byte> fresh;
  SINTER_RETURN_IF_ERROR(take_packed(frame, s, choice, &packed, &fresh));
  SINTER_RETURN_IF_ERROR(prepare_step(frame, step, choice, place.device, brought, packed, fresh, run));
  // Values in scratch memory are dropped; kept ones have their address by now.
  describe_prepared(frame, step, run);
  return ok_status();
}

// Packs the constants in `fresh`, if there are any, and has the backend prepare the step.
[[gnu::noinline]] Status Creator::prepare_step(const Frame& frame, const fb::Step& step, const Choice& choice,
                                               int device, const Brought& brought,
                                               std::span<const std::byte> packed, std::span<std::byte> fresh,
                                               RunStep* run) {
  Backend* backend = slots_[choice.slot].backend;
  StepRoom room;
  const OpCall call = make_call(frame, step, &room);
  brought.give(call);
  if (!fresh.empty())
    SINTER_RETURN_IF_ERROR(pack(choice, call, fresh, brought.scratch, session_->threads_of(choice.pool)));
  void* own = prepared_.allocate(choice.prepared, kBufferAlignment);
  SINTER_RETURN_UNLESS(own != nullptr, kDisagree);
  BumpArena arena({static_cast<std::byte*>(own), choice.prepared});
  PreparedStep prepared;
  for (const auto* views : {&call.inputs, &call.outputs})
    for (const TensorView& v : *views)
      session_->host_takes_part |= v.present() && !v.constant && v.memory == 0;
  BumpArena on_device({static_cast<std::byte*>(own), 0});  // none
  BumpArena staging({static_cast<std::byte*>(own), 0});
  if (device >= 0) {
    void* at = devices_[device].prepared.allocate(choice.device_prepared, kBufferAlignment);
    SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
    on_device = BumpArena({static_cast<std::byte*>(at), choice.device_prepared});
    if (choice.staging > 0) {
      at = devices_[device].staging.allocate(choice.staging, kBufferAlignment);
      SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
      staging = BumpArena({static_cast<std::byte*>(at), choice.staging});
    }
  }
  SINTER_RETURN_IF_ERROR(backend->prepare(call,
                                          {arena,
                                           on_device,
                                           {run->workspace, run->workspace_bytes},
                                           session_->threads_of(run->pool),
                                           static_cast<int32_t>(run->step),
                                           packed,
                                           {brought.scratch, choice.scratch},
                                           device >= 0 ? session_->devices[device].queue : nullptr,
                                           &staging,
                                           frame.index},
                                          &prepared));
  run->backend = slots_[choice.slot].index;
  run->run = prepared.run;
  run->state = prepared.state;
  SINTER_RETURN_UNLESS(
      run->run != nullptr && !arena.exhausted() && !on_device.exhausted() && !staging.exhausted(),
      error(Code::kInternal, "a backend prepared less than a step"));
  return ok_status();
}

}  // namespace sinter::detail

// The walk over an entry program and what it contains, done twice: with measuring arenas, then with memory.
// Both times the same allocations happen in the same order.
#include <cstring>

#include "runtime/session/session_state.h"

namespace sinter::detail {
namespace {

const Status kDisagree = error(Code::kInternal, "measuring and creating disagree");

uint32_t steps_to_run(const fb::ProgramPlan& plan) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < length(plan.steps()); ++i) n += !plan.steps()->Get(i)->elided();
  return n;
}

// The address that a port's value has, as the caller sees it.
TensorView public_view(TensorView view, const fb::Port& port) {
  if (port.dims() != nullptr) view.set_shape(items(port.dims()));
  return view;
}

}  // namespace

std::byte* Creator::address(const Frame& frame, const fb::Placement& p) const {
  if (!building()) return nullptr;
  if (frame.parent != nullptr) return frame.base + p.offset();
  if (bound_count_ > 0) {
    const fb::Placement* root = &p;
    while (root->alias_of() >= 0) root = find_placement(*frame.plan, static_cast<uint32_t>(root->alias_of()));
    for (size_t i = 0; i < bound_count_; ++i)
      if (bound_[i].value == root->value()) return bound_[i].data + (p.offset() - root->offset());
  }
  return regions_[p.region()] + p.offset();
}

std::byte* Creator::workspace_of(const Frame& frame, const fb::StepPlan& plan) const {
  if (!building() || plan.workspace_bytes() == 0) return nullptr;  // without bytes the region is not verified
  std::byte* base = frame.parent != nullptr ? frame.base : regions_[plan.workspace_region()];
  return base + plan.workspace_offset();
}

TensorView Creator::view_of(const Frame& frame, uint32_t v) const {
  const fb::Value& value = *frame.program->values()->Get(v);
  TensorView view = value_view(value);
  if (value.kind() == fb::ValueKind::Constant) {
    const auto& constant = *model_.state()->root->constants()->Get(static_cast<uint32_t>(value.constant()));
    view.data = const_cast<std::byte*>(constant_data(*model_.state(), constant));
    view.constant = true;
    return view;
  }
  if (value.kind() == fb::ValueKind::Prepared) {
    const auto first = items(frame.program->prepare()->Get(0)->outputs())[0];
    view.data = frame.prepared != nullptr ? frame.prepared[v - static_cast<uint32_t>(first)] : nullptr;
    view.constant = true;
    return view;
  }
  if (const fb::Placement* p = find_placement(*frame.plan, v); p != nullptr) {
    if (p->strides() != nullptr)
      for (int i = 0; i < view.rank; ++i) view.strides[i] = items(p->strides())[static_cast<size_t>(i)];
    view.data = address(frame, *p);
    return view;
  }
  // Captured: the owner's operand.
  uint32_t i = frame.shape.own;
  while (frame.program->inputs()->Get(i)->value() != v) ++i;
  const int32_t outer = items(frame.owner->inputs())[frame.shape.captured + (i - frame.shape.own)];
  return view_of(*frame.parent, static_cast<uint32_t>(outer));
}

OpCall Creator::make_call(const Frame& frame, const fb::Step& step, TensorView* views,
                          void* attributes) const {
  const auto ins = items(step.inputs()), outs = items(step.outputs());
  for (size_t i = 0; i < ins.size(); ++i)
    views[i] = ins[i] >= 0 ? view_of(frame, static_cast<uint32_t>(ins[i])) : TensorView{};
  for (size_t i = 0; i < outs.size(); ++i)
    views[ins.size() + i] = outs[i] >= 0 ? view_of(frame, static_cast<uint32_t>(outs[i])) : TensorView{};
  // Verified when the model was opened.
  (void)decode_attrs(step_op(step), items(step.ints()), items(step.floats()), attributes);
  return {step_op(step), attributes, {views, ins.size()}, {views + ins.size(), outs.size()}};
}

CopyItem Creator::copy_item(const TensorView& from, const TensorView& to) const {
  return {from.data, to.data, static_cast<size_t>(from.dense_bytes())};
}

Status Creator::walk_entry() {
  const fb::Program& program = *model_.state()->root->programs()->Get(options_.program);
  if (!building()) control_.allocate_array<SessionState>(1);
  control_.allocate(step_total() * sizeof(Choice), alignof(Choice));  // as create() has laid them

  Frame local;
  Frame* made = control_.allocate_array<Frame>(1);
  Frame& frame = made != nullptr ? *made : local;
  frame.program = &program;
  frame.plan = profile_->programs()->Get(options_.program);
  frame.index = options_.program;
  if (building()) {
    SINTER_CHECK(made != nullptr, kDisagree);
    session_->program = &program;
    session_->program_index = options_.program;
    session_->frames = made;
  }
  SINTER_RETURN_IF_ERROR(walk(frame));

  const uint32_t inputs = length(program.inputs()), outputs = length(program.outputs());
  TensorView* ports = control_.allocate_array<TensorView>(size_t{inputs} + outputs);
  uint32_t states = 0, updates = 0;
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    if (value.kind() == fb::ValueKind::State) ++states, updates += value.update() >= 0;
  }
  CopyItem* copies = control_.allocate_array<CopyItem>(size_t{states} + updates);
  OutputExtents* extents = control_.allocate_array<OutputExtents>(outputs);
  if (!building()) return ok_status();
  SINTER_CHECK(ports != nullptr && copies != nullptr && extents != nullptr, kDisagree);
  for (uint32_t i = 0; i < inputs; ++i) {
    const fb::Port& port = *program.inputs()->Get(i);
    ports[i] = public_view(view_of(frame, port.value()), port);
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    const fb::Port& port = *program.outputs()->Get(i);
    ports[inputs + i] = public_view(view_of(frame, port.value()), port);
    const auto* bounded = program.values()->Get(port.value())->extents();
    for (uint32_t e = 0; bounded != nullptr && e < bounded->size(); ++e) {
      const fb::Extent& extent = *bounded->Get(e);
      extents[i].used[extent.dim()] = view_of(frame, static_cast<uint32_t>(extent.value())).data;
    }
  }
  CopyItem* initial = copies;
  CopyItem* update = copies + states;
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    if (value.kind() != fb::ValueKind::State) continue;
    const TensorView state = view_of(frame, v);
    *initial = {nullptr, state.data, static_cast<size_t>(state.dense_bytes())};
    if (value.initial() >= 0)
      initial->from = constant_data(
          *model_.state(), *model_.state()->root->constants()->Get(static_cast<uint32_t>(value.initial())));
    ++initial;
    if (value.update() >= 0)
      *update++ = copy_item(view_of(frame, static_cast<uint32_t>(value.update())), state);
  }
  session_->inputs = {ports, inputs};
  session_->outputs = {ports + inputs, outputs};
  session_->extents = {extents, outputs};
  session_->initial = {copies, states};
  session_->updates = {copies + states, updates};
  session_->steps = frame.steps;
  return ok_status();
}

Status Creator::walk(Frame& frame) {
  const uint32_t count = steps_to_run(*frame.plan);
  RunStep* run = control_.allocate_array<RunStep>(count);
  SINTER_CHECK(!building() || run != nullptr, kDisagree);
  uint64_t kept[kFollowed / 64] = {};
  if (length(frame.program->prepare()) > 0) SINTER_RETURN_IF_ERROR(walk_prepare(frame, kept));
  // Steps without a backend are skipped by destroy(), should a later one fail.
  if (building()) frame.steps = {run, count};
  for (uint32_t s = 0; s < length(frame.program->steps()); ++s) {
    if (frame.plan->steps()->Get(s)->elided()) continue;
    if (building()) run->info = {frame.index, s, "session"};
    const Status status =
        is_control(*frame.program->steps()->Get(s)) ? walk_control(frame, s, run) : walk_step(frame, s, run);
    if (!status.ok()) return status.at(Where::kStep, static_cast<int32_t>(s));
    if (building()) ++run;
  }
  frame.kept = nullptr;
  return ok_status();
}

[[gnu::noinline]] Status Creator::walk_step(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  const size_t operands = size_t{length(step.inputs())} + length(step.outputs());
  TensorView* views = control_.allocate_array<TensorView>(operands);
  void* attributes = control_.allocate(attrs_bytes(step_op(step)), 8);
  Choice* noted = choices_ != nullptr ? &choices_[choice_] : nullptr;
  ++choice_;
  if (!building()) {
    TensorView local[kMaxOperands];
    AttrStorage storage;
    const OpCall call = make_call(frame, step, local, &storage);
    Choice choice;
    SINTER_RETURN_IF_ERROR(choose(call, plan, &choice));
    SINTER_RETURN_IF_ERROR(bring_operands(frame, step, choice, call.inputs));
    prepared_.allocate(choice.prepared, kBufferAlignment);
    if (noted != nullptr) *noted = choice;
    return ok_status();
  }
  SINTER_CHECK(views != nullptr && attributes != nullptr && noted != nullptr, kDisagree);
  run->call = make_call(frame, step, views, attributes);
  run->context.workspace = {workspace_of(frame, plan), static_cast<size_t>(plan.workspace_bytes())};
  run->context.threads = noted->single ? nullptr : threads_for(plan);
  SINTER_RETURN_IF_ERROR(bring_operands(frame, step, *noted, run->call.inputs));
  SINTER_RETURN_IF_ERROR(prepare_step(run->call, *noted, plan, run));
  // What lay in scratch memory goes.
  for (size_t i = 0; frame.kept != nullptr && i < run->call.inputs.size(); ++i)
    if (const int32_t v = items(step.inputs())[i];
        v >= 0 && frame.program->values()->Get(static_cast<uint32_t>(v))->kind() == fb::ValueKind::Prepared)
      run->call.inputs[i].data = view_of(frame, static_cast<uint32_t>(v)).data;
  return ok_status();
}

Status Creator::prepare_step(const OpCall& call, const Choice& choice, const fb::StepPlan&, RunStep* run) {
  Backend* backend = slots_[choice.slot].backend;
  void* own = prepared_.allocate(choice.prepared, kBufferAlignment);
  SINTER_CHECK(own != nullptr, kDisagree);
  BumpArena arena({static_cast<std::byte*>(own), choice.prepared});
  PreparedStep prepared;
  SINTER_RETURN_IF_ERROR(
      backend->prepare(call, arena, run->context.workspace, run->context.threads, &prepared));
  run->backend = backend;
  run->info.backend = backend->name();
  run->run = prepared.run;
  run->state = prepared.state;
  SINTER_CHECK(run->run != nullptr && !arena.exhausted(),
               error(Code::kInternal, "a backend prepared less than a step"));
  return ok_status();
}

Status Creator::walk_body(Frame& owner, const fb::Step& step, uint32_t program, std::byte* workspace,
                          Frame** made, Frame& local) {
  *made = control_.allocate_array<Frame>(1);
  SINTER_CHECK(!building() || *made != nullptr, kDisagree);
  if (*made == nullptr) *made = &local;
  Frame& frame = **made;
  frame.program = model_.state()->root->programs()->Get(program);
  frame.plan = profile_->programs()->Get(program);
  frame.index = program;
  frame.parent = &owner;
  frame.owner = &step;
  frame.shape = control_shape(step);
  frame.base = workspace;
  if (building()) {
    frame.next = session_->frames;
    session_->frames = &frame;
  }
  return walk(frame);
}

Status Creator::walk_control(Frame& frame, uint32_t s, RunStep* run) {
  const fb::Step& step = *frame.program->steps()->Get(s);
  const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
  TensorView* views =
      control_.allocate_array<TensorView>(size_t{length(step.inputs())} + length(step.outputs()));
  void* attributes = control_.allocate(attrs_bytes(step_op(step)), 8);
  if (building()) {
    SINTER_CHECK(views != nullptr && attributes != nullptr, kDisagree);
    run->call = make_call(frame, step, views, attributes);
    run->context.workspace = {workspace_of(frame, plan), static_cast<size_t>(plan.workspace_bytes())};
  }
  std::byte* workspace = workspace_of(frame, plan);
  return step_op(step) == Op::kIf ? walk_if(frame, step, workspace, run)
                                  : walk_loop(frame, step, workspace, run);
}

Status Creator::walk_if(Frame& frame, const fb::Step& step, std::byte* workspace, RunStep* run) {
  IfState* state = control_.allocate_array<IfState>(1);
  for (uint32_t b = 0; b < 2; ++b) {
    Frame local;
    Frame* branch = nullptr;
    SINTER_RETURN_IF_ERROR(walk_body(frame, step, items(step.subprograms())[b], workspace, &branch, local));
    const auto outs = items(step.outputs());
    CopyItem* copies = control_.allocate_array<CopyItem>(outs.size());
    if (!building()) continue;
    SINTER_CHECK(state != nullptr && copies != nullptr, kDisagree);
    state->steps[b] = branch->steps;
    state->results[b] = {copies, outs.size()};
    for (uint32_t i = 0; i < outs.size(); ++i)
      if (outs[i] >= 0)
        copies[i] =
            copy_item(view_of(*branch, branch->program->outputs()->Get(i)->value()), run->call.out(i));
  }
  if (!building()) return ok_status();
  state->session = session_;
  state->condition = run->call.in(0).data;
  run->run = run_if;
  run->state = state;
  return ok_status();
}

Status Creator::walk_loop(Frame& frame, const fb::Step& step, std::byte* workspace, RunStep* run) {
  LoopState* state = control_.allocate_array<LoopState>(1);
  Frame local;
  Frame* body = nullptr;
  SINTER_RETURN_IF_ERROR(walk_body(frame, step, items(step.subprograms())[0], workspace, &body, local));
  const uint32_t carried = control_shape(step).carried;
  const auto outs = items(step.outputs());
  const auto scans = static_cast<uint32_t>(outs.size()) - carried - 1;
  CopyItem* copies = control_.allocate_array<CopyItem>(3 * size_t{carried} + scans);
  if (!building()) return ok_status();
  SINTER_CHECK(state != nullptr && copies != nullptr, kDisagree);

  const auto parameter = [&](uint32_t i) { return view_of(*body, body->program->inputs()->Get(i)->value()); };
  const auto result = [&](uint32_t i) { return view_of(*body, body->program->outputs()->Get(i)->value()); };
  const OpCall& call = run->call;
  state->session = session_;
  state->trip_count = call.in(0).data;
  state->condition = call.in(1).data;
  state->max_trips = call.attrs<LoopAttrs>().max_trips;
  state->steps = body->steps;
  state->iteration = parameter(0).data;
  state->condition_parameter = parameter(1).data;
  state->condition_result = result(0).data;
  state->initial = {copies, carried};
  state->carry = {copies + carried, carried};
  state->finals = {copies + 2 * size_t{carried}, carried};
  state->scanned = {copies + 3 * size_t{carried}, scans};
  for (uint32_t i = 0; i < carried; ++i) {
    const TensorView p = parameter(2 + i);
    state->initial[i] = copy_item(call.in(2 + i), p);
    state->carry[i] = copy_item(result(1 + i), p);
    if (outs[i] >= 0) state->finals[i] = copy_item(p, call.out(i));
  }
  for (uint32_t i = 0; i < scans; ++i)
    if (outs[carried + i] >= 0) state->scanned[i] = copy_item(result(1 + carried + i), call.out(carried + i));
  state->trips = call.out(outs.size() - 1).data;
  run->run = run_loop;
  run->state = state;
  return ok_status();
}

}  // namespace sinter::detail

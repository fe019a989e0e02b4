// Backends with device memory: their steps, the waits of a run, and the memory that they get.
//
// A session has one block of each such memory: the regions that the plan has there, what the backend takes
// for itself, then what its steps take when they are prepared. A run goes through the steps in their order
// without asking where they are computed; a wait for a device is a separate step, put into the list
// when the session is created.
#include <bit>
#include <cstring>

#include "runtime/session/creator.h"

namespace sinter::detail {
namespace {

// Not inlined: with sanitizers g++ 12 takes a FlatBuffer's string for part of its table, and warns.
[[gnu::noinline]] bool same_name(const char* a, const char* b) { return std::strcmp(a, b) == 0; }

uint32_t bit(uint32_t device) { return uint32_t{1} << device; }

}  // namespace

// ---- while running

Status run_wait(void* state, const OpCall&, RunContext&) {
  DeviceState& device = *static_cast<DeviceState*>(state);
  const Status late = device.late, found = device.queue->finish();
  device.late = ok_status();
  return late.ok() ? found : late;
}

Status run_updates(void* state, const OpCall&, RunContext&) {
  const DeviceState& device = *static_cast<DeviceState*>(state);
  for (const CopyItem& item : device.updates)
    if (item.from != item.to && item.bytes > 0)
      SINTER_RETURN_IF_ERROR(device.queue->copy(item.to, item.from, item.bytes));
  return ok_status();
}

Status finish_devices(SessionState& session) {
  Status first;
  for (uint32_t i = 0; i < session.device_count; ++i) {
    RunContext none;
    if (session.devices[i].queue == nullptr) continue;
    const Status status = run_wait(&session.devices[i], {}, none);
    if (first.ok()) first = status;
  }
  return first;
}

Status finish_devices_of(SessionState& session, const Backend& backend) {
  for (uint32_t i = 0; i < session.device_count; ++i)
    if (session.devices[i].backend == &backend) SINTER_RETURN_IF_ERROR(session.devices[i].queue->finish());
  return ok_status();
}

void reset_devices(SessionState& session) {
  for (uint32_t i = 0; i < session.device_count; ++i) {
    DeviceState& device = session.devices[i];
    DeviceQueue& queue = *device.queue;
    for (const CopyItem& item : device.initial) {
      if (item.bytes == 0) continue;
      const Status status = item.from != nullptr ? queue.upload(item.to, item.from, item.bytes)
                                                 : queue.zero(item.to, item.bytes);
      if (device.late.ok()) device.late = status;
    }
  }
}

// ---- creating

// Names the first step that needs the memory, if there is one.
Status Creator::missing(uint8_t kind, const char* why) const {
  const Status status = unsupported(why, name_of(profile_->backends()->Get(kind - 1u)->c_str()));
  const fb::Program& program = *program_;
  for (uint32_t s = 0; s < length(program.steps()); ++s) {
    const fb::StepPlan& plan = *plan_->steps()->Get(s);
    if (plan.elided()) continue;
    for (uint32_t i = 0; i < length(plan.device_workspaces()); ++i)
      if (kinds_[plan.device_workspaces()->Get(i)->region()] == kind)
        return status.at_step(s, program_index_);
    for (const auto* list : {program.steps()->Get(s)->inputs(), program.steps()->Get(s)->outputs()})
      for (const int32_t v : items(list)) {
        const fb::Placement* p = v >= 0 ? find_placement(*plan_, static_cast<uint32_t>(v)) : nullptr;
        if (p != nullptr && kinds_[p->region()] == kind) return status.at_step(s, program_index_);
      }
  }
  return status;
}

// Whether the memory is a device's here. Where one backend is requested, the memory of the others is host
// memory, and their transfers are copies.
bool Creator::uses_device(uint8_t kind) const {
  return kind != 0 &&
         (!override_ || same_name(options_.backend, profile_->backends()->Get(kind - 1u)->c_str()));
}

// The memory of each region of the entry. Verified: kinds are backends of the profile, or 0.
void Creator::find_kinds() {
  for (uint32_t r = 0; r < length(plan_->regions()); ++r) {
    const uint8_t kind = plan_->regions()->Get(r)->memory_kind();
    kinds_[r] = uses_device(kind) ? kind : uint8_t{0};
  }
}

Status Creator::resolve_devices() {
  device_count_ = 0;
  const uint32_t count = packs_every_entry() ? length(profile_->entries()) : 1;
  for (uint32_t e = 0; e < count; ++e) {
    if (packs_every_entry()) enter(e);
    SINTER_RETURN_IF_ERROR(resolve_devices_of_entry());
  }
  SINTER_RETURN_UNLESS(
      !override_ || slot_count_ < 2 || device_count_ > 0 || slots_[0].backend->memory() == nullptr,
      unsupported("the plan has nothing in the device memory of backend %s; convert the model for a "
                  "target with that device, or run with another backend",
                  name_of(options_.backend)));
  return ok_status();
}

Status Creator::resolve_devices_of_entry() {
  find_kinds();
  for (uint32_t r = 0; r < length(plan_->regions()); ++r) {
    const fb::Region& region = *plan_->regions()->Get(r);
    const uint8_t kind = kinds_[r];
    if (kind == 0) continue;
    uint32_t d = 0;
    while (d < device_count_ && devices_[d].kind != kind) ++d;
    const size_t bytes = static_cast<size_t>(region.bytes()), state = holds_state(r) ? bytes : 0;
    if (d < device_count_) {
      devices_[d].arena += bytes, devices_[d].state += state;
      continue;
    }
    SINTER_RETURN_UNLESS(d < kMaxDevices,
                         unsupported("the plan uses more than %a device memories", kMaxDevices));
    devices_[d] = {};
    devices_[d].kind = kind;
    devices_[d].slot = override_ ? uint8_t{0} : static_cast<uint8_t>(kind - 1);
    devices_[d].arena = bytes, devices_[d].state = state;
    Backend* backend = slots_[devices_[d].slot].backend;
    if (backend == nullptr)
      return missing(kind,
                     "backend %s, in whose device memory this step is planned, is missing; pass it, or "
                     "request another one by name (\"reference\")");
    if (backend->memory() == nullptr)
      return missing(kind, "backend %s does not have the device memory that this step's plan needs");
    for (uint32_t other = 0; other < d; ++other)
      SINTER_RETURN_UNLESS(
          slots_[devices_[other].slot].backend != backend,
          unsupported("the profile has two device memories of backend %s", name_of(backend->name())));
    ++device_count_;
  }
  return ok_status();
}

Creator::StepPlace Creator::place_of(const Frame& frame, const fb::Step& step,
                                     const fb::StepPlan& plan) const {
  StepPlace place;
  if (device_count_ == 0 || is_control(step)) return place;
  bool host = false;
  uint8_t kind = plan.workspace_bytes() > 0 ? frame.kinds[plan.workspace_region()] : uint8_t{0};
  for (const auto* list : {step.inputs(), step.outputs()})
    for (const int32_t v : items(list)) {
      const int memory = v >= 0 ? planned_memory(frame, static_cast<uint32_t>(v)) : -1;
      if (memory == 0) host = true;
      if (memory > 0) kind = static_cast<uint8_t>(memory);
    }
  for (uint32_t d = 0; d < device_count_; ++d)
    if (kind != 0 && devices_[d].kind == kind) place = {static_cast<int>(d), host};
  return place;
}

// Where the plan has a value, whatever is bound; -1: nowhere (a constant).
int Creator::planned_memory(const Frame& frame, uint32_t value) const {
  if (const fb::Placement* p = find_placement(*frame.plan, value); p != nullptr)
    return frame.kinds[p->region()];
  if (frame.parent == nullptr || frame.program->values()->Get(value)->kind() != fb::ValueKind::Input)
    return -1;
  return planned_memory(*frame.parent, outer_of(frame, value));
}

// Those that a control step uses, for the other steps of its bodies or for copies.
uint32_t Creator::devices_of(const Frame& frame, const fb::Step& step, const fb::StepPlan& plan) const {
  if (device_count_ == 0 || !is_control(step)) return 0;
  uint32_t devices = 0;
  const auto add = [&](int kind) {
    for (uint32_t d = 0; d < device_count_; ++d)
      if (kind > 0 && devices_[d].kind == kind) devices |= bit(d);
  };
  for (uint32_t i = 0; i < length(plan.device_workspaces()); ++i)
    add(frame.kinds[plan.device_workspaces()->Get(i)->region()]);
  for (const auto* list : {step.inputs(), step.outputs()})
    for (const int32_t v : items(list))
      if (v >= 0) add(planned_memory(frame, static_cast<uint32_t>(v)));
  return devices;
}

// Of the device in whose memory the view is; null: in host memory, or while measuring.
DeviceQueue* Creator::queue_of(const TensorView& view) const {
  for (uint32_t d = 0; d < device_count_; ++d)
    if (view.memory != 0 && devices_[d].kind == view.memory) return queues_[d];
  return nullptr;
}

// The number of states that are placed on the device, or are updated there.
uint32_t Creator::states_on(uint32_t device, bool updates) const {
  const fb::Program& program = *program_;
  const fb::ProgramPlan& plan = *plan_;
  uint32_t count = 0;
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    if (value.kind() != fb::ValueKind::State || (updates && value.update() < 0)) continue;
    count += kinds_[find_placement(plan, v)->region()] == devices_[device].kind;
  }
  return count;
}

uint32_t Creator::with_states(bool updates) const {
  uint32_t devices = 0;
  for (uint32_t d = 0; d < device_count_; ++d)
    if (states_on(d, updates) > 0) devices |= bit(d);
  return devices;
}

// Steps that walk() adds: it goes the same way.
uint32_t Creator::extra_steps(const Frame& frame) const {
  if (device_count_ == 0) return 0;
  Waits waits;
  int extra = 0;
  for (uint32_t s = 0; s < length(frame.program->steps()); ++s) {
    const fb::StepPlan& plan = *frame.plan->steps()->Get(s);
    if (plan.elided()) continue;
    const StepPlace place = place_of(frame, *frame.program->steps()->Get(s), plan);
    extra += std::popcount(waits.before(place.device, place.transfer));
    waits.started |= devices_of(frame, *frame.program->steps()->Get(s), plan);
  }
  if (frame.parent != nullptr) return static_cast<uint32_t>(extra + std::popcount(waits.transfers));
  extra += std::popcount(with_states(true));
  return static_cast<uint32_t>(extra + std::popcount(waits.started | with_states(false)));
}

void Creator::add_extra(uint32_t devices, Status (*run)(void*, const OpCall&, RunContext&), Frame& frame,
                        size_t* at, RunStep** next) {
  for (uint32_t d = 0; d < device_count_; ++d) {
    if ((devices & bit(d)) == 0) continue;
    *at += sizeof(RunStep);
    if (!building()) continue;
    RunStep* step = new (*next) RunStep();
    step->run = run;
    step->state = &session_->devices[d];
    step->step = RunStep::kNoStep;
    step->call = CallUse::kUnused;
    ++*next, ++frame.steps->count;
  }
}

// `*group` ends unless the next step is of the same device.
Status Creator::end_group(int* group, int next) {
  const int last = *group;
  *group = next;
  if (!building() || last < 0 || last == next) return ok_status();
  return session_->devices[last].queue->end_group();
}

// No other backend can take a step in a device's memory.
Status Creator::choose_on(const Device& device, const OpCall& call, const fb::StepPlan& plan, Choice* choice,
                          Packing* packing) {
  Backend& backend = *slots_[device.slot].backend;
  StepNeeds needs;
  const Status status = backend.measure(call, 1, &needs);
  if (status.code == Code::kUnsupported)
    return unsupported("backend %s, in whose device memory this step is planned, refuses it: %t",
                       name_of(backend.name()), name_of(status.message));
  SINTER_RETURN_IF_ERROR(status);
  if (needs.workspace > plan.workspace_bytes())
    return error(Code::kOutOfMemory, "the device needs %a bytes of workspace and the plan has %b",
                 static_cast<int64_t>(needs.workspace), static_cast<int64_t>(plan.workspace_bytes()));
  for (size_t i = 0; i < call.inputs.size(); ++i)
    SINTER_RETURN_UNLESS(
        !call.has_input(i) || !call.in(i).constant || (i < 32 && (needs.packed >> i & 1) != 0),
        error(Code::kInternal, "backend %s does not accept a constant in its device memory",
              name_of(backend.name())));
  choice->slot = device.slot;
  choice->device = static_cast<int8_t>(&device - devices_);
  choice->prepared = needs.prepared;
  choice->device_prepared = needs.device_prepared;
  choice->staging = needs.staging;
  choice->packed = needs.packed;
  choice->call = needs.call;
  choice->scratch = needs.scratch;
  *packing = needs.packing;
  return ok_status();
}

// Measures what the queue takes for itself.
Status Creator::measure_queue(Device& device) {
  device.prepared = device.staging = {};
  BumpArena host, own, staging;
  DeviceQueue* none = nullptr;
  SINTER_RETURN_IF_ERROR(slots_[device.slot].backend->open_queue({host, own, staging}, &none));
  device.own = own.used(), device.own_host = host.used(), device.own_staging = staging.used();
  return ok_status();
}

// In the memory that take_devices() took; `prepared`: host memory, in which it comes next.
Status Creator::open_queue(uint32_t d, BumpArena& prepared) {
  const Device& device = devices_[d];
  DeviceState& state = session_->devices[d];
  void* at = prepared.allocate(device.own_host, kBufferAlignment);
  SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
  BumpArena host({static_cast<std::byte*>(at), device.own_host});
  BumpArena own({device.block + device.arena, device.own});
  std::byte* nothing = device.block;
  BumpArena staging({state.staging != nullptr ? state.staging : nothing, device.own_staging});
  SINTER_RETURN_IF_ERROR(state.backend->open_queue({host, own, staging}, &state.queue));
  queues_[d] = state.queue;
  SINTER_RETURN_UNLESS(!host.exhausted() && !own.exhausted() && !staging.exhausted(), kDisagree);
  return ok_status();
}

Status Creator::require(const Device& device, DeviceRequirements* needs) const {
  BumpArena taken;
  taken.allocate(device.own, kBufferAlignment);
  taken.allocate(device.prepared.used(), kBufferAlignment);
  needs->backend = slots_[device.slot].backend->name();
  needs->arena = device.arena;
  needs->state = device.state;
  needs->prepared = align_up(taken.used(), kBufferAlignment);
  BumpArena staging;
  staging.allocate(device.own_staging, kBufferAlignment);
  staging.allocate(device.staging.used(), kBufferAlignment);
  needs->staging = align_up(staging.used(), kBufferAlignment);
  SINTER_RETURN_UNLESS(!device.prepared.exhausted() && !taken.exhausted() && !staging.exhausted() &&
                           checked_add(needs->arena, needs->prepared, &needs->bytes),
                       error(Code::kOutOfMemory, "the session does not fit the device's address space"));
  return ok_status();
}

// The block that the caller gave for the device; empty: none.
Status Creator::brought_block(const DeviceRequirements& need, const Device& device,
                              std::span<std::byte>* block) const {
  const auto at = [&](Status status) { return status.at(Where::kBackend, device.kind - 1); };
  for (const DeviceBlock& b : options_.devices) {
    if (b.backend == nullptr || !same_name(b.backend, need.backend)) continue;
    SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(b.block.data()) % kBufferAlignment == 0,
                         at(invalid("a session's memory must be aligned to %a bytes", kBufferAlignment)));
    SINTER_RETURN_UNLESS(
        b.block.size() >= need.bytes,
        at(error(Code::kOutOfMemory, "the session needs %a bytes of device memory but got %b",
                 static_cast<int64_t>(need.bytes), static_cast<int64_t>(b.block.size()))));
    *block = b.block;
  }
  return ok_status();
}

// A block for each device, the caller's or a new one.
Status Creator::take_devices(const Requirements& needs) {
  DeviceState* states = control_.allocate_array<DeviceState>(device_count_);
  SINTER_RETURN_UNLESS(states != nullptr || device_count_ == 0, kDisagree);
  session_->devices = states;
  for (uint32_t d = 0; d < device_count_; ++d) {
    Device& device = devices_[d];
    const DeviceRequirements& need = needs.devices[d];
    const auto bytes = static_cast<int64_t>(need.bytes);
    const auto at = [&](Status status) { return status.at(Where::kBackend, device.kind - 1); };
    states[d].backend = slots_[device.slot].backend;
    std::span<std::byte> brought;
    SINTER_RETURN_IF_ERROR(brought_block(need, device, &brought));
    if (!brought.empty()) {
      device.block = brought.data();
    } else {
      const Status status =
          states[d].backend->memory()->allocate(need.bytes, kBufferAlignment, &device.block);
      SINTER_RETURN_UNLESS(
          status.ok(),
          status.code == Code::kOutOfMemory
              ? at(error(Code::kOutOfMemory,
                         "the session needs %a bytes of device memory, but fewer are left", bytes))
              : at(status));
      states[d].owned = true;
    }
    states[d].block = device.block;
    session_->device_count = d + 1;
    if (need.staging > 0) {
      SINTER_RETURN_IF_ERROR(
          at(states[d].backend->memory()->allocate_staging(need.staging, &states[d].staging)));
      const size_t own_staging = align_up(device.own_staging, kBufferAlignment);
      device.staging = BumpArena({states[d].staging + own_staging, need.staging - own_staging});
    }
    std::byte* region = device.block;
    for (uint32_t r = 0; r < length(plan_->regions()); ++r) {
      if (kinds_[r] != device.kind) continue;
      regions_[r] = region;
      region += plan_->regions()->Get(r)->bytes();
    }
    const size_t own = align_up(device.own, kBufferAlignment);
    device.prepared = BumpArena({region + own, need.prepared - own});
  }
  return ok_status();
}

}  // namespace sinter::detail

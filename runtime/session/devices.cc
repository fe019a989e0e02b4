// This file finds the devices that an entry uses and where the plan computes its steps, and gives memory to
// each device. A run goes through the steps in their order without asking where they are computed; a wait for
// a device is a separate step, put into the list when the session is created (in_order).
#include "runtime/session/devices.h"

#include <bit>
#include <cstring>

namespace sinter::detail {
namespace {

// Not inlined: with sanitizers g++ 12 takes a FlatBuffer's string for part of its table, and warns.
[[gnu::noinline]] bool same_name(const char* a, const char* b) { return std::strcmp(a, b) == 0; }

// Calls `visit` for each operand of a step that is not absent.
template <class Visit>
void each_operand(const fb::Step& step, const Visit& visit) {
  for (const auto* list : {step.inputs(), step.outputs()})
    for (const int32_t v : items(list))
      if (v >= 0) visit(static_cast<uint32_t>(v));
}

Status at_device(const Entry::Device& device, Status status) {
  return status.at(Where::kBackend, device.kind - 1);
}

}  // namespace

// ---- the plan's memories

uint32_t Frame::memories_of(uint32_t s) const {
  const fb::StepPlan& planned = step_plan(s);
  uint32_t memories = 0;
  each_operand(step(s), [&](uint32_t v) {
    if (const int memory = planned_memory(v); memory >= 0)
      memories |= memory_bit(static_cast<uint8_t>(memory));
  });
  if (planned.workspace_bytes() > 0) memories |= memory_bit(kinds[planned.workspace_region()]) & ~kHostMemory;
  for (uint32_t i = 0; i < length(planned.device_workspaces()); ++i)
    memories |= memory_bit(kinds[planned.device_workspaces()->Get(i)->region()]);
  return memories;
}

StepPlace Frame::place_of(uint32_t s) const {
  if (entry->device_count == 0 || is_control(step(s))) return {};
  const uint32_t memories = memories_of(s), devices = memories & ~kHostMemory;
  if (devices == 0) return {};
  return {static_cast<uint8_t>(std::countr_zero(devices)), (memories & kHostMemory) != 0};
}

uint32_t Frame::devices_within(uint32_t s) const {
  return entry->device_count == 0 || !is_control(step(s)) ? 0 : memories_of(s) & ~kHostMemory;
}

// Returns the memory in which the plan has a value, whatever is bound; -1: none (it is a constant).
int Frame::planned_memory(uint32_t v) const {
  if (const fb::Placement* p = find_placement(*plan, v); p != nullptr) return kinds[p->region()];
  if (parent == nullptr || value(v).kind() != fb::ValueKind::Input) return -1;
  return parent->planned_memory(outer_of(v));
}

uint32_t Frame::devices_with_states(bool updates) const {
  uint32_t memories = 0;
  for (uint32_t v = 0; entry->device_count > 0 && v < length(program->values()); ++v) {
    if (value(v).kind() != fb::ValueKind::State || (updates && value(v).update() < 0)) continue;
    memories |= memory_bit(kinds[find_placement(*plan, v)->region()]);
  }
  return memories & ~kHostMemory;
}

// ---- resolving

// Returns whether the memory is a device's here. Where one backend is requested, the memory of the others is
// host memory, and their transfers are copies.
bool Entry::uses_device(uint8_t kind) const {
  return kind != 0 && (options.backend == nullptr || same_name(options.backend, backend_name(kind)));
}

// The error names the first step that needs the memory, if there is one.
Status Entry::missing(const Frame& of, uint8_t kind, const char* why) const {
  const Status status = unsupported(why, name_of(backend_name(kind)));
  for (uint32_t s = 0; s < of.step_count(); ++s)
    if (!of.step_plan(s).elided() && (of.memories_of(s) & memory_bit(kind)) != 0)
      return status.at_step(s, of.index);
  return status;
}

Status Entry::resolve_devices() {
  for (uint32_t e = 0; e < packed_entries(); ++e) SINTER_RETURN_IF_ERROR(add_devices(frame(e)));
  SINTER_RETURN_UNLESS(
      !requested || backend_count < 2 || device_count > 0 || backends[0]->memory() == nullptr,
      unsupported("the plan has nothing in the device memory of backend %s; convert the model for a "
                  "target with that device, or run with another backend",
                  name_of(options.backend)));
  return ok_status();
}

Status Entry::add_devices(const Frame& of) {
  for (uint32_t r = 0; r < length(of.plan->regions()); ++r) {
    const uint8_t kind = of.kinds[r];
    if (kind == 0) continue;
    const auto bytes = static_cast<size_t>(of.plan->regions()->Get(r)->bytes());
    uint32_t d = 0;
    while (d < device_count && devices[d].kind != kind) ++d;
    if (d == device_count) {
      SINTER_RETURN_UNLESS(d < kMaxDevices,
                           unsupported("the plan uses more than %a device memories", kMaxDevices));
      devices[d] = {kind, requested ? uint8_t{0} : static_cast<uint8_t>(kind - 1)};
      Backend* backend = backends[devices[d].slot];
      if (backend == nullptr)
        return missing(of, kind,
                       "backend %s, in whose device memory this step is planned, is missing; pass it, or "
                       "request another one by name (\"reference\")");
      if (backend->memory() == nullptr)
        return missing(of, kind, "backend %s does not have the device memory that this step's plan needs");
      for (uint32_t other = 0; other < d; ++other)
        SINTER_RETURN_UNLESS(
            backends[devices[other].slot] != backend,
            unsupported("the profile has two device memories of backend %s", name_of(backend->name())));
      ++device_count;
    }
    if (packs_only) continue;  // without regions
    devices[d].arena += bytes;
    if (of.holds_state(r)) devices[d].state += bytes;
  }
  return ok_status();
}

// ---- measuring

// No other backend can take a step in a device's memory.
Status Chooser::choose_on_device(const Entry::Device& device, const OpCall& call, const fb::StepPlan& plan,
                                 Choice* choice, Packing* packing) {
  Backend& backend = *entry_.backends[device.slot];
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
  choice->accept(device.slot, needs);
  *packing = needs.packing;
  choice->memory = device.kind;
  return ok_status();
}

Status Devices::measure() {
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    SINTER_RETURN_IF_ERROR(chooser_.use(entry_.devices[d].slot));
    BumpArena host, own, staging;
    DeviceQueue* none = nullptr;
    SINTER_RETURN_IF_ERROR(backend(d).open_queue({host, own, staging}, &none));
    units_[d].own = own.used(), units_[d].own_host = host.used(), units_[d].own_staging = staging.used();
  }
  return ok_status();
}

Status Devices::require(Requirements* needs) const {
  needs->device_count = entry_.device_count;
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    const Unit& unit = units_[d];
    DeviceRequirements& need = needs->devices[d];
    BumpArena taken, staging;
    taken.allocate(unit.own, kBufferAlignment);
    taken.allocate(unit.prepared.used(), kBufferAlignment);
    staging.allocate(unit.own_staging, kBufferAlignment);
    staging.allocate(unit.staging.used(), kBufferAlignment);
    need.backend = backend(d).name();
    need.arena = entry_.devices[d].arena;
    need.state = entry_.devices[d].state;
    need.prepared = align_up(taken.used(), kBufferAlignment);
    need.staging = align_up(staging.used(), kBufferAlignment);
    SINTER_RETURN_UNLESS(!unit.prepared.exhausted() && !taken.exhausted() && !staging.exhausted() &&
                             checked_add(need.arena, need.prepared, &need.bytes),
                         error(Code::kOutOfMemory, "the session does not fit the device's address space"));
  }
  return ok_status();
}

// ---- placing

// The block that the caller gave for the device; empty: none.
Status Devices::brought_block(uint32_t d, const DeviceRequirements& need, std::span<std::byte>* block) const {
  const Entry::Device& device = entry_.devices[d];
  for (const DeviceBlock& b : entry_.options.devices) {
    if (b.backend == nullptr || !same_name(b.backend, need.backend)) continue;
    SINTER_RETURN_UNLESS(
        reinterpret_cast<uintptr_t>(b.block.data()) % kBufferAlignment == 0,
        at_device(device, invalid("a session's memory must be aligned to %a bytes", kBufferAlignment)));
    SINTER_RETURN_UNLESS(
        b.block.size() >= need.bytes,
        at_device(device, error(Code::kOutOfMemory, "the session needs %a bytes of device memory but got %b",
                                static_cast<int64_t>(need.bytes), static_cast<int64_t>(b.block.size()))));
    *block = b.block;
  }
  return ok_status();
}

Status Devices::take_blocks(const Requirements& needs, SessionState& session, Frame& root) {
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    const Entry::Device& device = entry_.devices[d];
    const DeviceRequirements& need = needs.devices[d];
    DeviceState& state = session.devices[d];
    Unit& unit = units_[d];
    state.backend = &backend(d);
    std::span<std::byte> brought;
    SINTER_RETURN_IF_ERROR(brought_block(d, need, &brought));
    state.block = brought.data();
    if (brought.empty()) {
      const Status status = backend(d).memory()->allocate(need.bytes, kBufferAlignment, &state.block);
      SINTER_RETURN_UNLESS(
          status.ok(),
          at_device(device, status.code == Code::kOutOfMemory
                                ? error(Code::kOutOfMemory,
                                        "the session needs %a bytes of device memory, but fewer are left",
                                        static_cast<int64_t>(need.bytes))
                                : status));
      state.owned = true;
    }
    session.device_count = d + 1;
    if (need.staging > 0) {
      SINTER_RETURN_IF_ERROR(
          at_device(device, backend(d).memory()->allocate_staging(need.staging, &state.staging)));
      const size_t own_staging = align_up(unit.own_staging, kBufferAlignment);
      unit.staging = BumpArena({state.staging + own_staging, need.staging - own_staging});
    }
    std::byte* region = state.block;
    for (uint32_t r = 0; r < length(root.plan->regions()); ++r) {
      if (root.kinds[r] != device.kind) continue;
      root.regions[r] = region;
      region += root.plan->regions()->Get(r)->bytes();
    }
    const size_t own = align_up(unit.own, kBufferAlignment);
    unit.prepared = BumpArena({region + own, need.prepared - own});
  }
  return ok_status();
}

Status Devices::open_queues(BumpArena& prepared, SessionState& session) {
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    Unit& unit = units_[d];
    DeviceState& state = session.devices[d];
    BumpArena host, own({state.block + entry_.devices[d].arena, unit.own});
    SINTER_RETURN_IF_ERROR(take_part(prepared, unit.own_host, &host));
    BumpArena staging({state.staging != nullptr ? state.staging : state.block, unit.own_staging});
    SINTER_RETURN_IF_ERROR(backend(d).open_queue({host, own, staging}, &state.queue));
    unit.queue = state.queue;
    SINTER_RETURN_UNLESS(!host.exhausted() && !own.exhausted() && !staging.exhausted(), kDisagree);
  }
  return ok_status();
}

Status Devices::open_packing_queues(const Requirements& needs, StructureArena& control) {
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    const DeviceRequirements& need = needs.devices[d];
    Unit& unit = units_[d];
    void* at = control.allocate(unit.own_host, kBufferAlignment);
    SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
    std::span<std::byte> block;
    SINTER_RETURN_IF_ERROR(brought_block(d, need, &block));
    if (block.empty()) continue;
    SINTER_RETURN_IF_ERROR(chooser_.open(entry_.devices[d].slot));
    BumpArena host({static_cast<std::byte*>(at), unit.own_host}), own({block.data(), unit.own});
    const size_t taken = align_up(unit.own, kBufferAlignment);
    unit.prepared = BumpArena({block.data() + taken, need.prepared - taken});
    std::byte*& bytes = unit.packing_staging;
    if (unit.own_staging > 0)
      SINTER_RETURN_IF_ERROR(backend(d).memory()->allocate_staging(unit.own_staging, &bytes));
    BumpArena staging({bytes != nullptr ? bytes : block.data(), unit.own_staging});
    SINTER_RETURN_IF_ERROR(backend(d).open_queue({host, own, staging}, &unit.queue));
  }
  return ok_status();
}

void Devices::close_packing_queues() {
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    Unit& unit = units_[d];
    if (unit.queue != nullptr) backend(d).close_queue(unit.queue);
    if (unit.packing_staging != nullptr) backend(d).memory()->free_staging(unit.packing_staging);
    unit.queue = nullptr, unit.packing_staging = nullptr;
  }
}

}  // namespace sinter::detail

// A build without device memory (SINTER_DEVICE_MEMORY=OFF), in place of devices.cc: plans that use it are
// refused, unless the caller requests another backend, and all else is in host memory.
#include <cstring>

#include "runtime/session/creator.h"

namespace sinter::detail {

Status run_wait(void*, const OpCall&, RunContext&) { return ok_status(); }
Status run_updates(void*, const OpCall&, RunContext&) { return ok_status(); }
Status finish_devices(SessionState&) { return ok_status(); }
Status finish_devices_of(SessionState&, const Backend&) { return ok_status(); }
void reset_devices(SessionState&) {}

Status Creator::resolve_devices() {
  device_count_ = 0;
  for (uint32_t r = 0; r < length(plan_->regions()); ++r) {
    const uint8_t kind = plan_->regions()->Get(r)->memory_kind();
    kinds_[r] = 0;
    if (kind == 0) continue;
    const char* name = profile_->backends()->Get(kind - 1u)->c_str();
    SINTER_RETURN_UNLESS(
        override_ && std::strcmp(options_.backend, name) != 0,
        unsupported("the plan uses the device memory of backend %s, and this program is built without device "
                    "memory; request another backend by name (\"reference\")",
                    name_of(name)));
  }
  return ok_status();
}

void Creator::find_kinds() {}  // all are 0

Creator::StepPlace Creator::place_of(const Frame&, const fb::Step&, const fb::StepPlan&) const { return {}; }
int Creator::planned_memory(const Frame&, uint32_t) const { return 0; }
uint32_t Creator::devices_of(const Frame&, const fb::Step&, const fb::StepPlan&) const { return 0; }
DeviceQueue* Creator::queue_of(const TensorView&) const { return nullptr; }
uint32_t Creator::states_on(uint32_t, bool) const { return 0; }
uint32_t Creator::with_states(bool) const { return 0; }
uint32_t Creator::extra_steps(const Frame&) const { return 0; }
void Creator::add_extra(uint32_t, Status (*)(void*, const OpCall&, RunContext&), Frame&, size_t*, RunStep**) {
}
Status Creator::end_group(int*, int) { return ok_status(); }
Status Creator::choose_on(const Device&, const OpCall&, const fb::StepPlan&, Choice*, Packing*) {
  return kDisagree;
}
Status Creator::measure_queue(Device&) { return kDisagree; }
Status Creator::open_queue(uint32_t, BumpArena&) { return kDisagree; }
Status Creator::require(const Device&, DeviceRequirements*) const { return kDisagree; }
Status Creator::brought_block(const DeviceRequirements&, const Device&, std::span<std::byte>*) const {
  return kDisagree;
}
Status Creator::take_devices(const Requirements&) {
  control_.allocate_array<DeviceState>(0);  // aligned as when measuring (walk_entry)
  return ok_status();
}

}  // namespace sinter::detail

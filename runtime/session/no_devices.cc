// A build without device memory (SINTER_DEVICE_MEMORY=OFF), in place of devices.cc and run_devices.cc: plans
// that use it are refused, unless the caller requests another backend, and all else is in host memory.
#include <cstring>

#include "runtime/session/devices.h"

namespace sinter::detail {

Status run_wait(void*, const OpCall&, RunContext&) { return ok_status(); }
Status run_updates(void*, const OpCall&, RunContext&) { return ok_status(); }
Status finish_devices(SessionState&) { return ok_status(); }
Status finish_devices_of(SessionState&, const Backend&) { return ok_status(); }
void reset_devices(SessionState&) {}

bool Entry::uses_device(uint8_t) const { return false; }
Status Entry::resolve_devices() {
  for (uint32_t r = 0; r < length(root.plan->regions()); ++r) {
    const uint8_t kind = root.plan->regions()->Get(r)->memory_kind();
    SINTER_RETURN_UNLESS(
        kind == 0 || (requested && std::strcmp(options.backend, backend_name(kind)) != 0),
        unsupported("the plan uses the device memory of backend %s, and this program is built without device "
                    "memory; request another backend by name (\"reference\")",
                    name_of(backend_name(kind))));
  }
  return ok_status();
}

StepPlace Frame::place_of(uint32_t) const { return {}; }
uint32_t Frame::devices_within(uint32_t) const { return 0; }
uint32_t Frame::devices_with_states(bool) const { return 0; }
Status Chooser::choose_on_device(const Entry::Device&, const OpCall&, const fb::StepPlan&, Choice*,
                                 Packing*) {
  return kDisagree;
}
Status Devices::measure() { return ok_status(); }
Status Devices::require(Requirements*) const { return ok_status(); }
Status Devices::take_blocks(const Requirements&, SessionState&, Frame&) { return ok_status(); }
Status Devices::open_queues(BumpArena&, SessionState&) { return ok_status(); }
Status Devices::open_packing_queues(const Requirements&, StructureArena&) { return ok_status(); }
void Devices::close_packing_queues() {}

}  // namespace sinter::detail

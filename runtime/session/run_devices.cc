// Devices in a run: waiting for them, updating states in their memory, and setting these to initial values.
#include "runtime/session/session_state.h"

namespace sinter::detail {

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

}  // namespace sinter::detail

// Plans with steps in the memory of a device: whether the device is here, and why the other steps are on the
// host.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/file_view.h"
#include "converter/cli/host_session.h"

namespace sinter::convert {

// The backends in whose memory the entry has values and that cannot be used here: this program lacks them, or
// their device is missing. With the reason.
struct MissingDevice {
  std::string backend, reason;
};
std::vector<MissingDevice> missing_devices(const FileView& view);
// The backend that a session takes to run the profile on this machine: as planned (empty), or the reference
// kernels where a device is missing.
std::string backend_here(const Model& model, uint32_t profile);
// The same as options of a session; a backend that they name stays.
HostSession::Options session_here(const Model& model, uint32_t profile, HostSession::Options options);

// Why a step is computed on the host; empty: it is not, or the plan has nothing on a device.
std::string why_on_host(const FileView& view, uint32_t program, uint32_t step);

}  // namespace sinter::convert

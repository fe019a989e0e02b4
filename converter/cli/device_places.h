// Plans with steps in a device's memory: whether the device is here, and why other steps are on the host.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/file_view.h"
#include "converter/cli/host_session.h"

namespace sinter::convert {

// A backend in whose memory the entry has values, and why it cannot be used here.
struct MissingDevice {
  std::string backend, reason;
};
std::vector<MissingDevice> missing_devices(const FileView& view);
// Returns the backend that runs the profile here: the reference kernels if a device is missing, else empty.
std::string backend_here(const Model& model, uint32_t profile);
// Returns the options with that backend, unless they name one.
HostSession::Options session_here(const Model& model, uint32_t profile, HostSession::Options options);

// Returns why a step is computed on the host; empty if it is not, or if the plan has nothing on a device.
std::string why_on_host(const FileView& view, uint32_t program, uint32_t step);

}  // namespace sinter::convert

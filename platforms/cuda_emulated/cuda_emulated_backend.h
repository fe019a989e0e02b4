// The backend of CUDA devices on a driver that emulates one on the host (platforms/cuda/emulator), for tests:
// a library of Sinter's build, opened by name, that is not installed.
#pragma once

#include "platforms/cuda/device_backend.h"

namespace sinter {

namespace cuda {
extern const Provider kEmulated;
// Opens the library. Returns null if there is none, or it has another version.
struct StandIn;
const StandIn* open_stand_in();
}  // namespace cuda

class CudaEmulatedBackend final : public cuda::DeviceBackend {
 public:
  constexpr CudaEmulatedBackend() : DeviceBackend(cuda::kEmulated) {}
  const char* name() const override;
};

}  // namespace sinter

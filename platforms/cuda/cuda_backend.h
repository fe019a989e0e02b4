// The backend of NVIDIA's devices: the first device of the machine's driver.
#pragma once

#include "platforms/cuda/device_backend.h"

namespace sinter {

class CudaBackend final : public cuda::DeviceBackend {
 public:
  constexpr CudaBackend() : DeviceBackend(cuda::kMachine) {}
  const char* name() const override;
};

}  // namespace sinter

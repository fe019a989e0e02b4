#include "tests/op_harness/device_fence.h"

#include <dlfcn.h>

#include "platforms/cuda/emulator/stand_in.h"
#include "platforms/cuda_emulated/cuda_emulated_backend.h"

namespace sinter::test {
namespace {

// The backend has opened the library.
void set_fence(const std::byte* at, size_t bytes, bool on) {
  if (const cuda::StandIn* emulator = cuda::open_stand_in()) emulator->fence(at, bytes, on);
}

const DeviceFence fence("cuda-emulated", set_fence);

}  // namespace
}  // namespace sinter::test

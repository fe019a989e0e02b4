// The kernels, compiled for the host.
#pragma once

#include <cstddef>

#include "platforms/cuda/kernels/kernel_list.h"

namespace sinter::cuda::emulator {

struct HostKernel {
  const char* name = nullptr;
  void (*run)(const void* arguments) = nullptr;
  size_t argument_bytes = 0;
  int threads = 0;
  bool cooperates = false;
};
// Returns null if no kernel has this name.
const HostKernel* find_kernel(const char* name);

}  // namespace sinter::cuda::emulator

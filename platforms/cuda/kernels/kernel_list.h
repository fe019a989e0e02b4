// The kernels of kernels.def by number.
#pragma once

#include <cstdint>

namespace sinter::cuda {

enum class Kernel : uint16_t {
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) k_##name,
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
};

inline constexpr int kKernelCount = 0
#define SINTER_CUDA_KERNEL(name, ...) +1
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
    ;

// Threads of a block.
constexpr int threads_of(Kernel kernel) {
  constexpr int kThreads[] = {
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) threads,
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
  };
  return kThreads[static_cast<int>(kernel)];
}

}  // namespace sinter::cuda

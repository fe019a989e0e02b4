// The kernels of kernels.def and the units of units.def by number.
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

enum class Unit : uint16_t {
#define SINTER_CUDA_UNIT(name) k_##name,
#include "platforms/cuda/kernels/units.def"
#undef SINTER_CUDA_UNIT
};

inline constexpr int kUnitCount = 0
#define SINTER_CUDA_UNIT(name) +1
#include "platforms/cuda/kernels/units.def"
#undef SINTER_CUDA_UNIT
    ;

// Returns the threads of a block.
constexpr int threads_of(Kernel kernel) {
  constexpr int kThreads[] = {
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) threads,
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
  };
  return kThreads[static_cast<int>(kernel)];
}

constexpr Unit unit_of(Kernel kernel) {
  constexpr Unit kUnits[] = {
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) Unit::k_##unit,
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
  };
  return kUnits[static_cast<int>(kernel)];
}

constexpr const char* kernel_name(Kernel kernel) {
  constexpr const char* kNames[] = {
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) #name,
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
  };
  return kNames[static_cast<int>(kernel)];
}

}  // namespace sinter::cuda

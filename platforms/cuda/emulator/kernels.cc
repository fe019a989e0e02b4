#include "platforms/cuda/emulator/kernels.h"

#include <cstring>

#include "platforms/cuda/kernels/kernel_arguments.h"

#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) \
  extern "C" void sinter_cuda_##name(const sinter::cuda::Arguments& a);
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL

namespace sinter::cuda::emulator {
namespace {

enum Cooperation : bool { kApart = false, kTogether = true };

constexpr HostKernel kKernels[] = {
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation)                                    \
  {#name, [](const void* a) { sinter_cuda_##name(*static_cast<const Arguments*>(a)); }, sizeof(Arguments), \
   threads, k##cooperation},
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
};

}  // namespace

const HostKernel* find_kernel(const char* name) {
  for (const HostKernel& k : kKernels)
    if (std::strcmp(k.name, name) == 0) return &k;
  return nullptr;
}

}  // namespace sinter::cuda::emulator

// The libraries that the platform opens by name when a session needs the device: the machine's driver, and
// Sinter's own module of compiled kernels. Both stay open until the program ends.
#pragma once

#include <span>

#include "platforms/cuda/driver/api.h"
#include "platforms/cuda/kernels/kernel_list.h"
#include "runtime/core/status.h"

namespace sinter::cuda {

// The origin of a device and its code. Each function is called once.
struct Provider {
  // Finds the driver, or fails with kUnsupported and the reason.
  Status (*driver)(const EntryPoints** entries) = nullptr;
  // Gives the code of each unit, in the order of units.def, in a form that EntryPoints::load_module takes.
  // `*toolkit` is the major version of the toolkit that compiled them; 0: any driver runs them.
  Status (*units)(const void* const** images, int* toolkit) = nullptr;
};

// The machine's driver, and the module.
extern const Provider kMachine;

// Opens a library of Sinter's: the path in an environment variable, if that is set; else the one by this name
// beside the program or library that this code is part of, or in the folder of libraries of the same
// installation; else in the folders of the system's loader. Null if none can be opened, and `why`.
void* open_library(const char* name, const char* variable, std::span<char> why);

// The function that the module exports, and its result.
inline constexpr char kModuleFunction[] = "sinter_cuda_units";
struct ModuleUnits {
  const char* kernels = nullptr;  // kKernelNames of the sources that it was built from
  const void* const* images = nullptr;
  int toolkit = 0;
};
using ModuleFunction = const ModuleUnits* (*)();

// The kernels, the types of their arguments and their threads, as text: a module that has others is refused.
inline constexpr char kKernelNames[] =
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) \
#unit "/" #name ":" #Arguments "," #threads ";"
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL
    ;

}  // namespace sinter::cuda

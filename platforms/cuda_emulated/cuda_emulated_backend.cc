#include "platforms/cuda_emulated/cuda_emulated_backend.h"

#include <dlfcn.h>

#include <cstring>

#include "platforms/cuda/emulator/stand_in.h"

namespace sinter {

const char* CudaEmulatedBackend::name() const { return "cuda-emulated"; }

namespace cuda {
namespace {

constexpr char kLibraryName[] = "libsinter_cuda_emulated.so", kLibraryVariable[] = "SINTER_CUDA_EMULATOR";

Status open_emulator(const StandIn** all) {
  static char why[256];
  void* library = open_library(kLibraryName, kLibraryVariable, why);
  SINTER_RETURN_UNLESS(library != nullptr,
                       unsupported("the emulator of CUDA devices cannot be opened (%s); it is part of builds "
                                   "with tests only",
                                   name_of(why)));
  const auto function = reinterpret_cast<StandInFunction>(dlsym(library, kStandInFunction));
  *all = function != nullptr ? function() : nullptr;
  SINTER_RETURN_UNLESS(
      *all != nullptr && std::strcmp((*all)->kernels, kKernelNames) == 0,
      unsupported("%s is of another version of Sinter; build both together", name_of(kLibraryName)));
  return ok_status();
}

Status give_entries(const EntryPoints** entries) {
  const StandIn* all = nullptr;
  SINTER_RETURN_IF_ERROR(open_emulator(&all));
  *entries = all->entries;
  return ok_status();
}

// The emulator finds kernels by their names.
Status give_no_images(const void* const** images, int* toolkit) {
  static const void* const none[kUnitCount] = {};
  *images = none;
  *toolkit = 0;
  return ok_status();
}

}  // namespace

constinit const Provider kEmulated = {give_entries, give_no_images};

const StandIn* open_stand_in() {
  const StandIn* all = nullptr;
  return open_emulator(&all).ok() ? all : nullptr;
}

}  // namespace cuda
}  // namespace sinter

#include "platforms/cuda/driver/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace sinter::cuda {
namespace {

constexpr char kDriverName[] = "libcuda.so.1", kModuleName[] = "libsinter_cuda.so";
// A path to use in place of the module's name.
constexpr char kModuleVariable[] = "SINTER_CUDA_MODULE";

Status open_driver(const EntryPoints** entries) {
  static EntryPoints all;
  void* library = dlopen(kDriverName, RTLD_NOW | RTLD_LOCAL);
  SINTER_RETURN_UNLESS(library != nullptr,
                       unsupported("there is no CUDA driver on this machine (%s); install it, or run with "
                                   "another backend",
                                   name_of(kDriverName)));
#define SINTER_CUDA_ENTRY(field, symbol, ...)                                                     \
  all.field = reinterpret_cast<DriverResult (*)(__VA_ARGS__)>(dlsym(library, #symbol));           \
  SINTER_RETURN_UNLESS(                                                                           \
      all.field != nullptr,                                                                       \
      unsupported("the CUDA driver does not have %s; version 12.0 or later is needed: update it", \
                  name_of(#symbol)));
#include "platforms/cuda/driver/entry_points.def"
#undef SINTER_CUDA_ENTRY
  *entries = &all;
  return ok_status();
}

Status open_units(const void* const** images, int* toolkit) {
  void* library = open_library(kModuleName, kModuleVariable);
  SINTER_RETURN_UNLESS(
      library != nullptr,
      unsupported("%s, which has the CUDA kernels, cannot be opened; put it beside the program, or "
                  "give its path in %t",
                  name_of(kModuleName), name_of(kModuleVariable)));
  const auto function = reinterpret_cast<ModuleFunction>(dlsym(library, kModuleFunction));
  const ModuleUnits* units = function != nullptr ? function() : nullptr;
  SINTER_RETURN_UNLESS(
      units != nullptr && std::strcmp(units->kernels, kKernelNames) == 0,
      unsupported("%s is of another version of Sinter; install both from one build", name_of(kModuleName)));
  *images = units->images;
  *toolkit = units->toolkit;
  return ok_status();
}

}  // namespace

void* open_library(const char* name, const char* variable) {
  if (const char* named = std::getenv(variable)) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  Dl_info here;
  char path[1024];
  if (dladdr(reinterpret_cast<const void*>(&open_library), &here) != 0 && here.dli_fname != nullptr) {
    const char* slash = std::strrchr(here.dli_fname, '/');
    const size_t folder = slash != nullptr ? static_cast<size_t>(slash - here.dli_fname) + 1 : 0;
    const size_t length = std::strlen(name) + 1;
    if (folder + length <= sizeof(path)) {
      std::memcpy(path, here.dli_fname, folder);
      std::memcpy(path + folder, name, length);
      if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

constinit const Provider kMachine = {open_driver, open_units};

}  // namespace sinter::cuda

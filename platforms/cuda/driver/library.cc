#include "platforms/cuda/driver/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sinter::cuda {
namespace {

constexpr char kDriverName[] = "libcuda.so.1", kModuleName[] = "libsinter_cuda.so";
// The variable with a path to use in place of the module's name.
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

// Returns whether a file is as long as its header states. The loader maps a truncated one, and the program
// would end with a bus error.
bool is_complete(const char* path) {
  Elf64_Ehdr header = {};
  struct stat file = {};
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opens a pipe without waiting
  const bool there = fd >= 0 && ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
                     ::read(fd, &header, sizeof(header)) == sizeof(header);
  if (fd >= 0) (void)::close(fd);
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  return there && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_shoff + sections <= static_cast<uint64_t>(file.st_size);
}

void* open_path(const char* path, std::span<char> why) {
  const bool named = std::strchr(path, '/') != nullptr && ::access(path, R_OK) == 0;
  if (named && !is_complete(path)) {
    std::snprintf(why.data(), why.size(), "%s is not a complete library", path);
    return nullptr;
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* reason = library == nullptr ? dlerror() : nullptr;
  std::snprintf(why.data(), why.size(), "%s", reason != nullptr ? reason : "");
  return library;
}

// Writes the file that this code is part of; returns the characters of its folder, with the slash, or 0.
int own_folder(std::span<char> file) {
  Dl_info here, program;
  if (dladdr(reinterpret_cast<const void*>(&open_library), &here) == 0 || here.dli_fname == nullptr) return 0;
  std::snprintf(file.data(), file.size(), "%s", here.dli_fname);
  // The loader has the name of the program as it was typed.
  const auto* headers = reinterpret_cast<const void*>(::getauxval(AT_PHDR));
  if (dladdr(headers, &program) != 0 && program.dli_fbase == here.dli_fbase) {
    const ssize_t length = ::readlink("/proc/self/exe", file.data(), file.size() - 1);
    if (length < 0) return 0;
    file[static_cast<size_t>(length)] = '\0';
  }
  const char* slash = std::strrchr(file.data(), '/');
  return slash != nullptr ? static_cast<int>(slash - file.data()) + 1 : 0;
}

Status open_units(const void* const** images, int* toolkit) {
  static char why[256];
  void* library = open_library(kModuleName, kModuleVariable, why);
  SINTER_RETURN_UNLESS(library != nullptr,
                       unsupported("the CUDA kernels cannot be opened (%s); put libsinter_cuda.so beside the "
                                   "program, or give its path in %t",
                                   name_of(why), name_of(kModuleVariable)));
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

void* open_library(const char* name, const char* variable, std::span<char> why) {
  // A user who starts a program with more rights than their own does not choose its code.
  const char* given = ::secure_getenv(variable);
  if (given != nullptr && *given != '\0') return open_path(given, why);
  char own[1024], path[1024 + 64];
  const int folder = own_folder(own);
  // SINTER_LIBRARY_FOLDER is the folder of libraries in the installation, relative to its programs.
  for (const char* at : {"", SINTER_LIBRARY_FOLDER}) {
    const int length = std::snprintf(path, sizeof(path), "%.*s%s%s", folder, own, at, name);
    const bool fits = folder > 0 && length > 0 && static_cast<size_t>(length) < sizeof(path);
    if (fits && ::access(path, F_OK) == 0) return open_path(path, why);
  }
  return open_path(name, why);
}

constinit const Provider kMachine = {open_driver, open_units};

}  // namespace sinter::cuda

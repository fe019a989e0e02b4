// Accesses of kernels to global memory, which are ordinary ones of C++. Kernels are compiled with
// -fsanitize=thread, with which compilers call a function at each access, and -fsanitize=alignment, with
// which they call one where an address is not aligned for its type. These are the functions: the emulator
// replaces both sanitizers' own libraries.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "platforms/cuda/emulator/block.h"
#include "platforms/cuda/emulator/device_memory.h"
#include "platforms/cuda/emulator/run.h"

namespace sinter::cuda::emulator {
namespace {

inline void read(const void* at, size_t bytes) {
  if (!in_device_range(at) || here == nullptr) return;
  if (const char* fault = read_device(at, bytes)) breach_global(fault, at);
}
inline void write(const void* at, size_t bytes) {
  if (!in_device_range(at) || here == nullptr) return;
  if (const char* fault = write_device(at, bytes)) breach_global(fault, at);
}

// The structure by which compilers describe a misaligned access.
struct Source {
  const char* file;
  uint32_t line, column;
};
struct Type {
  uint16_t kind, information;
  char name[1];
};
struct Misaligned {
  Source source;
  const Type* type;
  unsigned char log_alignment, kind;
};

}  // namespace
}  // namespace sinter::cuda::emulator

// NOLINTBEGIN: the names are the compilers'
#define SINTER_ACCESSES(bytes)                                                                 \
  void __tsan_read##bytes(void* at) { sinter::cuda::emulator::read(at, bytes); }               \
  void __tsan_write##bytes(void* at) { sinter::cuda::emulator::write(at, bytes); }             \
  void __tsan_unaligned_read##bytes(void* at) { sinter::cuda::emulator::read(at, bytes); }     \
  void __tsan_unaligned_write##bytes(void* at) { sinter::cuda::emulator::write(at, bytes); }   \
  void __tsan_read_write##bytes(void* at) { __tsan_read##bytes(at), __tsan_write##bytes(at); } \
  void __tsan_unaligned_read_write##bytes(void* at) { __tsan_read##bytes(at), __tsan_write##bytes(at); }
extern "C" {
SINTER_ACCESSES(1)
SINTER_ACCESSES(2)
SINTER_ACCESSES(4)
SINTER_ACCESSES(8)
SINTER_ACCESSES(16)
void __tsan_read_range(void* at, size_t bytes) { sinter::cuda::emulator::read(at, bytes); }
void __tsan_write_range(void* at, size_t bytes) { sinter::cuda::emulator::write(at, bytes); }
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  sinter::cuda::emulator::read(from, bytes), sinter::cuda::emulator::write(to, bytes);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  sinter::cuda::emulator::read(from, bytes), sinter::cuda::emulator::write(to, bytes);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  sinter::cuda::emulator::write(to, bytes);
  return std::memset(to, value, bytes);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void __ubsan_handle_type_mismatch_v1(const sinter::cuda::emulator::Misaligned* what, uintptr_t address) {
  const auto* at = reinterpret_cast<const void*>(address);
  if (!sinter::cuda::emulator::in_device_range(at) || sinter::cuda::emulator::here == nullptr) return;
  char text[160];
  std::snprintf(text, sizeof(text),
                "is accessed as %.60s at an address that is not aligned for it, in %.60s:%u",
                what->type->name, what->source.file, what->source.line);
  sinter::cuda::emulator::breach_global(text, at);
}
}
#undef SINTER_ACCESSES
// NOLINTEND

// What the programs for boards share: memory, the cap of instruction sets, and the end of a program that
// failed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#ifdef SINTER_WITH_SIMD
#include "platforms/simd/simd_kernels.h"
#endif
#include "sinter/backends.h"
#include "sinter/sinter.h"

namespace sinter::device {

[[noreturn]] inline void fail(const char* what, const Status& status) {
  char text[200];
  format_status(status, text);
  std::fprintf(stderr, "%s: %s\n", what, text);
  std::exit(1);
}

// Limits the Highway kernels to what SINTER_CPU_CAP names, as the command line does; XNNPACK reads it by
// itself and has its own name for SSE4. SINTER_SIMD_VARIANT forces one of their variants. Returns the name,
// or "full".
inline const char* cap_instruction_sets() {
#ifdef SINTER_WITH_SIMD
  if (const char* variant = std::getenv("SINTER_SIMD_VARIANT"); !force_simd_variant(variant)) {
    std::fprintf(stderr, "SINTER_SIMD_VARIANT: there is no '%s'\n", variant);
    std::exit(2);
  }
#endif
  const char* cap = std::getenv("SINTER_CPU_CAP");
  if (cap == nullptr || *cap == '\0') return "full";
#ifdef SINTER_WITH_SIMD
  const char* name = std::strcmp(cap, "sse41") == 0 ? "sse4" : cap;
  if (!set_simd_cap(name)) {
    std::fprintf(stderr, "SINTER_CPU_CAP: '%s' is not an instruction set of this processor\n", cap);
    std::exit(2);
  }
#endif
  return cap;
}

// The result's value; ends the program where there is an error instead.
template <class T>
T must(const char* what, Result<T> result) {
  if (!result.ok()) fail(what, result.status());
  return std::move(result.value());
}

// Never freed.
inline std::span<std::byte> take(size_t bytes) {
  void* at = ::aligned_alloc(kBufferAlignment, align_up(bytes, kBufferAlignment));
  if (at == nullptr) std::exit(6);
  return {static_cast<std::byte*>(at), bytes};
}

}  // namespace sinter::device

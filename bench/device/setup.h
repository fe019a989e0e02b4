// What the programs for boards share: memory, and the end of a program that failed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "sinter/backends.h"
#include "sinter/sinter.h"

namespace sinter::device {

[[noreturn]] inline void fail(const char* what, const Status& status) {
  char text[200];
  format_status(status, text);
  std::fprintf(stderr, "%s: %s\n", what, text);
  std::exit(1);
}

// The result's value; ends the program where there is an error instead.
template <class T>
T must(const char* what, Result<T> result) {
  if (!result.ok()) fail(what, result.status());
  return std::move(result.value());
}

// Never freed.
inline std::span<std::byte> take(size_t bytes) {
  void* at = std::aligned_alloc(kBufferAlignment, align_up(bytes, kBufferAlignment));
  if (at == nullptr) std::exit(6);
  return {static_cast<std::byte*>(at), bytes};
}

}  // namespace sinter::device

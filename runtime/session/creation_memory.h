// The memory of what is created: control structures, and prepared memory. The first pass of a creation
// measures it; in the second, the same allocations happen in the same order.
#pragma once

#include <algorithm>

#include "runtime/session/session_state.h"

namespace sinter::detail {

// Building: the next `bytes` of an arena as one of their own.
inline Status take_part(BumpArena& from, size_t bytes, BumpArena* part) {
  auto* at = static_cast<std::byte*>(from.allocate(bytes, kBufferAlignment));
  SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
  *part = BumpArena({at, bytes});
  return ok_status();
}

struct CreationMemory {
  explicit CreationMemory(Pointers pointers = Pointers::kHere) : control(pointers) {}

  bool building() const { return !control.measuring(); }

  // n control structures; null while measuring.
  template <class T>
  Status take(size_t n, T** at) {
    *at = control.allocate_array<T>(n);
    return !building() || *at != nullptr ? ok_status() : kDisagree;
  }

  // Scratch memory is the arena, which is free until the first run, or, where that is too small, the end of
  // prepared memory, most of which is not yet taken while the early weights are packed.
  std::byte* scratch(size_t bytes) const { return bytes <= arena_bytes ? arena : prepared_end - bytes; }
  // Measuring: prepared memory must have room for this scratch when a step has taken `own` more bytes of it.
  void need_scratch(size_t bytes, size_t own) {
    if (building() || bytes <= arena_bytes) return;
    BumpArena taken = prepared;
    taken.allocate(own, kBufferAlignment);
    size_t peak = align_up(taken.used(), kBufferAlignment);
    if (taken.exhausted() || !checked_add(peak, bytes, &peak)) peak = SIZE_MAX;
    prepared_peak = std::max(prepared_peak, peak);
  }
  size_t prepared_bytes() const { return std::max(prepared.used(), prepared_peak); }
  // Measuring: whether every size fits the address space.
  bool fits() const { return !control.exhausted() && !prepared.exhausted() && prepared_peak != SIZE_MAX; }
  // Building: whether all that was taken had been measured.
  Status check_taken() const { return control.exhausted() || prepared.exhausted() ? kDisagree : ok_status(); }

  StructureArena control;
  BumpArena prepared;
  std::byte* prepared_end = nullptr;
  size_t prepared_peak = 0;  // of prepared memory, where it has to hold scratch as well
  std::byte* arena = nullptr;
  size_t arena_bytes = 0;
};

}  // namespace sinter::detail

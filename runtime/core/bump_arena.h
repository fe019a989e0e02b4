// BumpArena: allocates aligned pieces of one block of memory, front to back; nothing is ever freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "runtime/core/checked.h"

namespace sinter {

// In measuring mode (no memory) only the sizes are added up, so that one code path both states and takes the
// memory.
class BumpArena {
 public:
  BumpArena() = default;  // measures
  explicit BumpArena(std::span<std::byte> memory) : base_(memory.data()), capacity_(memory.size()) {}

  bool measuring() const { return base_ == nullptr; }
  // Returns the bytes used so far, alignment gaps included. The base counts as aligned to the largest
  // alignment that was asked for.
  size_t used() const { return used_; }
  // Returns whether an allocation did not fit.
  bool exhausted() const { return exhausted_; }

  // Returns null while measuring or when exhausted.
  void* allocate(size_t bytes, size_t alignment) {
    const size_t start = align_up(used_, alignment);
    if (start < used_ || bytes > SIZE_MAX - start) return exhausted_ = true, nullptr;
    used_ = start + bytes;
    if (base_ == nullptr) return nullptr;
    if (used_ > capacity_) return exhausted_ = true, nullptr;
    return base_ + start;
  }
  // Returns n value-initialised objects, or null while measuring or when exhausted.
  template <class T>
  T* allocate_array(size_t n) {
    size_t bytes = 0;
    if (!checked_mul(n, sizeof(T), &bytes)) return exhausted_ = true, nullptr;
    void* p = allocate(bytes, alignof(T));
    if (p == nullptr) return nullptr;
    T* items = static_cast<T*>(p);
    for (size_t i = 0; i < n; ++i) new (items + i) T();
    return items;
  }

 private:
  std::byte* base_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
  bool exhausted_ = false;
};

}  // namespace sinter

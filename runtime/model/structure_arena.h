// The arena of the structures that the runtime keeps in the caller's memory, those of an opened model and of
// a session. A program on a 64-bit machine can also measure them as a 32-bit ARM processor has them, so that
// `sinter inspect` and `sinter embed` state for a microcontroller what Session::requirements() states on it.
#pragma once

#include "runtime/core/bump_arena.h"
#include "runtime/core/tensor_view.h"
#include "sinter/session.h"

namespace sinter::detail {

// The pointers that are measured: this machine's, or those of 32-bit ARM (AAPCS). Memory is taken with kHere
// only.
enum class Pointers : uint8_t { kHere, k32 };

// Returns the size of T on 32-bit ARM, where it is checked against the compiler's own.
template <class T>
struct On32;
#if defined(__arm__)
#define SINTER_CHECK_ON_32(T, Bytes, Alignment) \
  static_assert(sizeof(T) == Bytes && alignof(T) == Alignment, "state the new size in this line")
#else
#define SINTER_CHECK_ON_32(T, Bytes, Alignment) static_assert(sizeof(T) >= Bytes && alignof(T) >= Alignment)
#endif
#define SINTER_ON_32(T, Bytes, Alignment)                         \
  template <>                                                     \
  struct On32<T> {                                                \
    static constexpr size_t bytes = Bytes, alignment = Alignment; \
  };                                                              \
  SINTER_CHECK_ON_32(T, Bytes, Alignment)
template <class T>
struct On32<T*> {
  static constexpr size_t bytes = 4, alignment = 4;
};
SINTER_ON_32(TensorView, 136, 8);

// A BumpArena that measures structures for either kind of pointers.
class StructureArena {
 public:
  explicit StructureArena(Pointers pointers = Pointers::kHere) : pointers_(pointers) {}
  explicit StructureArena(std::span<std::byte> memory) : arena_(memory) {}

  bool measuring() const { return arena_.measuring(); }
  size_t used() const { return arena_.used(); }
  bool exhausted() const { return arena_.exhausted(); }
  void* allocate(size_t bytes, size_t alignment) { return arena_.allocate(bytes, alignment); }
  template <class T>
  T* allocate_array(size_t n) {
    if (measures_32()) return allocate_on_32<T>(n), nullptr;
    return arena_.allocate_array<T>(n);
  }
  // Allocates objects that the caller constructs.
  template <class T>
  void* allocate_raw(size_t n) {
    size_t bytes = 0;
    if (measures_32()) return allocate_on_32<T>(n), nullptr;
    return checked_mul(n, sizeof(T), &bytes) ? arena_.allocate(bytes, alignof(T)) : fail();
  }

 private:
  // Returns false on 32-bit machines, whose code has no second case.
  bool measures_32() const { return sizeof(void*) > 4 && pointers_ == Pointers::k32; }
  template <class T>
  void allocate_on_32(size_t n) {
    size_t bytes = 0;
    if (checked_mul(n, On32<T>::bytes, &bytes))
      arena_.allocate(bytes, On32<T>::alignment);
    else
      fail();
  }
  void* fail() { return arena_.allocate(SIZE_MAX, 1); }

  BumpArena arena_;
  Pointers pointers_ = Pointers::kHere;
};

// The bytes that opening takes (open), those of them that stay taken (retained), and those that a sealed
// build takes in place of the first.
struct OpenNeeds {
  size_t open = 0, retained = 0, sealed_open = 0;
};
Result<OpenNeeds> open_needs(std::span<const std::byte> file, const OpenOptions& options, Pointers pointers);
// Returns Session::requirements() on a machine with such pointers. It is exact if the reference kernels
// compute every step; the memory that backends prepare is that of this machine.
Result<Requirements> requirements_on(const Model& model, const SessionOptions& options, Pointers pointers);

}  // namespace sinter::detail

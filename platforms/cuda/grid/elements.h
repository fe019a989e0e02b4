// Elements that are moved and not computed with: types by their width, and indices.
#pragma once

#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {

struct alignas(16) Sixteen {
  uint64_t half[2];
};

template <class T>
struct TypeOf {
  using type = T;
};

// Calls f(TypeOf<T>) for the type of `width` bytes: 1, 2, 4, 8 or 16.
template <class F>
SINTER_DEVICE void for_width(int width, F&& f) {
  switch (width) {
    case 1:
      return f(TypeOf<uint8_t>{});
    case 2:
      return f(TypeOf<uint16_t>{});
    case 4:
      return f(TypeOf<uint32_t>{});
    case 8:
      return f(TypeOf<uint64_t>{});
    default:
      return f(TypeOf<Sixteen>{});
  }
}

// Wide elements can have an address that is a multiple of less, because dense values begin anywhere (slices,
// joins, views of them). They are then moved byte by byte.
template <class T>
SINTER_DEVICE T load(const std::byte* at) {
  if constexpr (alignof(T) > 1)
    if (reinterpret_cast<uintptr_t>(at) % alignof(T) != 0) {
      T v;
      for (size_t i = 0; i < sizeof(T); ++i) reinterpret_cast<std::byte*>(&v)[i] = at[i];
      return v;
    }
  return *reinterpret_cast<const T*>(at);
}
template <class T>
SINTER_DEVICE void store(std::byte* at, const T& v) {
  if constexpr (alignof(T) > 1)
    if (reinterpret_cast<uintptr_t>(at) % alignof(T) != 0) {
      for (size_t i = 0; i < sizeof(T); ++i) at[i] = reinterpret_cast<const std::byte*>(&v)[i];
      return;
    }
  *reinterpret_cast<T*>(at) = v;
}

// Returns whether both addresses are multiples of `width`, a power of two.
SINTER_DEVICE bool aligned(const void* a, const void* b, int width) {
  return ((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) &
          static_cast<uintptr_t>(width - 1)) == 0;
}

// Reads an index of 4 or 8 bytes.
SINTER_DEVICE int64_t load_index(const std::byte* at, int width) {
  return width == 4 ? load<int32_t>(at) : load<int64_t>(at);
}
// Reads an index into an axis of `dim` elements; a negative one counts from the end. False if out of range.
SINTER_DEVICE bool read_index(const std::byte* at, int width, int64_t dim, int64_t* index) {
  const int64_t given = load_index(at, width);
  *index = given < 0 ? given + dim : given;
  return *index >= 0 && *index < dim;
}

}  // namespace sinter::cuda

// The places, reads and writes of a thread's elements in an element-wise kernel.
#pragma once

#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/elements/elements.h"

namespace sinter::cuda {

// The elements first .. first + count - 1 of a row along the innermost axis.
struct ElementPlace {
  uint32_t row = 0, first = 0;
  int count = 0;
};
SINTER_DEVICE ElementPlace place_of(const ElementBox& box, uint32_t group) {
  ElementPlace p;
  p.row = box.groups_per_row.divide(group, &p.first);
  p.first *= kElementGroup;
  const uint32_t left = box.dims[0].divisor - p.first;
  p.count = left < kElementGroup ? static_cast<int>(left) : kElementGroup;
  return p;
}

SINTER_DEVICE std::byte* address_of(const ElementBox& box, const ElementOperand& o, const ElementPlace& p) {
  int64_t offset = int64_t{o.steps[0]} * p.first;
  uint32_t n = p.row;
  SINTER_ROLLED for (int i = 1; i < box.rank; ++i) {
    uint32_t at = n;
    if (i + 1 < box.rank) n = box.dims[i].divide(n, &at);
    offset += int64_t{o.steps[i]} * at;
  }
  return o.data + offset * o.width;
}

namespace element {

// Four elements that are read or written as one or two words of up to 16 bytes.
template <class W>
struct alignas(sizeof(W) * 4 < 16 ? sizeof(W) * 4 : 16) Four {
  W v[4];
};

template <class W>
SINTER_DEVICE bool in_one(const std::byte* at, int64_t step, int count) {
  return step == 1 && count == kElementGroup && reinterpret_cast<uintptr_t>(at) % alignof(Four<W>) == 0;
}

// Reads bits as unsigned integers; elements beyond `count` are 0.
template <class W, class Bits>
SINTER_DEVICE void read(const std::byte* at, int64_t step, int count, Bits (&bits)[4]) {
  if (in_one<W>(at, step, count)) {
    const Four<W> all = *reinterpret_cast<const Four<W>*>(at);
    for (int i = 0; i < 4; ++i) bits[i] = all.v[i];
  } else if (step == 0) {
    const W v = *reinterpret_cast<const W*>(at);
    for (int i = 0; i < 4; ++i) bits[i] = v;
  } else {
    for (int i = 0; i < 4; ++i) bits[i] = i < count ? reinterpret_cast<const W*>(at)[i * step] : W{0};
  }
}
template <class W, class Bits>
SINTER_DEVICE void write(std::byte* at, int64_t step, int count, const Bits (&bits)[4]) {
  if (in_one<W>(at, step, count)) {
    Four<W> all;
    for (int i = 0; i < 4; ++i) all.v[i] = static_cast<W>(bits[i]);
    *reinterpret_cast<Four<W>*>(at) = all;
  } else {
    for (int i = 0; i < 4; ++i)
      if (i < count) reinterpret_cast<W*>(at)[i * step] = static_cast<W>(bits[i]);
  }
}

}  // namespace element

// Reads elements of up to 4 bytes.
SINTER_DEVICE void read_narrow(const ElementBox& box, const ElementOperand& o, const ElementPlace& p,
                               uint32_t (&bits)[4]) {
  const std::byte* at = address_of(box, o, p);
  if (o.width == 4) return element::read<uint32_t>(at, o.steps[0], p.count, bits);
  if (o.width == 2) return element::read<uint16_t>(at, o.steps[0], p.count, bits);
  element::read<uint8_t>(at, o.steps[0], p.count, bits);
}
SINTER_DEVICE void write_narrow(const ElementBox& box, const ElementOperand& o, const ElementPlace& p,
                                const uint32_t (&bits)[4]) {
  std::byte* at = address_of(box, o, p);
  if (o.width == 4) return element::write<uint32_t>(at, o.steps[0], p.count, bits);
  if (o.width == 2) return element::write<uint16_t>(at, o.steps[0], p.count, bits);
  element::write<uint8_t>(at, o.steps[0], p.count, bits);
}
// Reads elements of up to 8 bytes.
SINTER_DEVICE void read_wide(const ElementBox& box, const ElementOperand& o, const ElementPlace& p,
                             uint64_t (&bits)[4]) {
  if (o.width == 8) return element::read<uint64_t>(address_of(box, o, p), o.steps[0], p.count, bits);
  uint32_t narrow[4];
  read_narrow(box, o, p, narrow);
  for (int i = 0; i < 4; ++i) bits[i] = narrow[i];
}
SINTER_DEVICE void write_wide(const ElementBox& box, const ElementOperand& o, const ElementPlace& p,
                              const uint64_t (&bits)[4]) {
  if (o.width == 8) return element::write<uint64_t>(address_of(box, o, p), o.steps[0], p.count, bits);
  uint32_t narrow[4];
  for (int i = 0; i < 4; ++i) narrow[i] = static_cast<uint32_t>(bits[i]);
  write_narrow(box, o, p, narrow);
}

}  // namespace sinter::cuda

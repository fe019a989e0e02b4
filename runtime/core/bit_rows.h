// Rows of unsigned integers of 2 to 8 bits.
//
// Integers of 2, 4 and 8 bits follow each other, low bits first, as the element types of these widths do.
// Others, of 3, 5, 6 and 7 bits, are divided into planes of 4, 2 or 1 bits, which are rows of such integers
// themselves, the plane of the lowest bits first: 3 = 2 + 1, 5 = 4 + 1, 6 = 4 + 2, 7 = 4 + 2 + 1. Each plane
// of a row takes whole bytes. A vector of bytes of a plane is then a vector of neighbouring integers' bits,
// whatever the width.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter {

struct BitPlanes {
  int bits = 0;         // of the lowest plane: 2, 4 or 8
  bool two = false;     // a plane of 2 bits follows
  bool single = false;  // a plane of 1 bit is last
};

// Returns the planes of integers of `bits` bits, 2 to 8.
constexpr BitPlanes bit_planes(int bits) {
  if (bits == 8) return {8, false, false};
  if (bits < 4) return {2, false, bits == 3};
  return {4, bits >= 6, bits % 2 != 0};
}
// Returns whether no element type has this width.
constexpr bool has_planes(int bits) { return bits == 3 || bits == 5 || bits == 6 || bits == 7; }

constexpr int64_t plane_bytes(int bits, int64_t count) {
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}
// Returns the bytes of a row of `count` integers, at most `count` + 2.
constexpr int64_t bit_row_bytes(int bits, int64_t count) {
  const BitPlanes p = bit_planes(bits);
  return plane_bytes(p.bits, count) + (p.two ? plane_bytes(2, count) : 0) +
         (p.single ? plane_bytes(1, count) : 0);
}

namespace bit_rows_detail {
constexpr unsigned plane_item(const uint8_t* plane, int bits, int64_t k) {
  return static_cast<unsigned>(plane[k * bits / 8]) >> (k * bits % 8) & ((1u << bits) - 1);
}
constexpr void set_plane_item(uint8_t* plane, int bits, int64_t k, unsigned item) {
  plane[k * bits / 8] =
      static_cast<uint8_t>(plane[k * bits / 8] | (item & ((1u << bits) - 1)) << (k * bits % 8));
}
}  // namespace bit_rows_detail

// Returns integer k of a row of `count`.
constexpr uint8_t bit_row_item(const uint8_t* row, int bits, int64_t count, int64_t k) {
  const BitPlanes p = bit_planes(bits);
  unsigned item = bit_rows_detail::plane_item(row, p.bits, k);
  row += plane_bytes(p.bits, count);
  if (p.two) {
    item |= bit_rows_detail::plane_item(row, 2, k) << p.bits;
    row += plane_bytes(2, count);
  }
  if (p.single) item |= bit_rows_detail::plane_item(row, 1, k) << (bits - 1);
  return static_cast<uint8_t>(item);
}
// Sets integer k of a row of zeros.
constexpr void set_bit_row_item(uint8_t* row, int bits, int64_t count, int64_t k, uint8_t item) {
  const BitPlanes p = bit_planes(bits);
  bit_rows_detail::set_plane_item(row, p.bits, k, item);
  row += plane_bytes(p.bits, count);
  if (p.two) {
    bit_rows_detail::set_plane_item(row, 2, k, static_cast<unsigned>(item) >> p.bits);
    row += plane_bytes(2, count);
  }
  if (p.single) bit_rows_detail::set_plane_item(row, 1, k, static_cast<unsigned>(item) >> (bits - 1));
}

}  // namespace sinter

// Sixteen integers of a product's operand as signed bytes, which tensor cores multiply.
//
// An int16 v is 256 * high + low + 128 with signed bytes high and low, so that a product of int16 is the sum
// of products of bytes, and an operand's zero point moves by 128.
#pragma once

#include "platforms/cuda/kernels/integer/requantize.h"

namespace sinter::cuda {

// Planes of bytes: one, or the high ones and the low ones. Zeros add nothing to any sum.
template <int kPlanes>
struct IntegerChunk {
  Words<16> plane[kPlanes] = {};
};

// Splits two words of int16 pairs into four high and four low bytes.
SINTER_DEVICE void split_pairs(uint32_t first, uint32_t second, uint32_t* high, uint32_t* low) {
  *high = select_bytes(first, second, 0x7531);
  *low = select_bytes(first, second, 0x6420) ^ 0x80808080u;
}

// Reads elements 4 * n to 4 * n + 3, which begin at a multiple of their bytes.
template <int n>
SINTER_DEVICE void load_four(const std::byte* from, IntegerChunk<1>* c) {
  c->plane[0].w[n] = *reinterpret_cast<const uint32_t*>(from);
}
template <int n>
SINTER_DEVICE void load_four(const std::byte* from, IntegerChunk<2>* c) {
  const auto v = *reinterpret_cast<const Words<8>*>(from);
  split_pairs(v.w[0], v.w[1], &c->plane[0].w[n], &c->plane[1].w[n]);
}

// Reads all of them, from an address that is a multiple of 16.
SINTER_DEVICE void load_sixteen(const std::byte* from, IntegerChunk<1>* c) {
  c->plane[0] = *reinterpret_cast<const Words<16>*>(from);
}
SINTER_DEVICE void load_sixteen(const std::byte* from, IntegerChunk<2>* c) {
  const auto a = reinterpret_cast<const Words<16>*>(from)[0], b = reinterpret_cast<const Words<16>*>(from)[1];
  split_pairs(a.w[0], a.w[1], &c->plane[0].w[0], &c->plane[1].w[0]);
  split_pairs(a.w[2], a.w[3], &c->plane[0].w[1], &c->plane[1].w[1]);
  split_pairs(b.w[0], b.w[1], &c->plane[0].w[2], &c->plane[1].w[2]);
  split_pairs(b.w[2], b.w[3], &c->plane[0].w[3], &c->plane[1].w[3]);
}

// Puts element `n` of four into word i, which is 0 there.
SINTER_DEVICE void put_one(int32_t v, int n, int i, IntegerChunk<1>* c) {
  c->plane[0].w[i] |= (static_cast<uint32_t>(v) & 0xff) << (8 * n);
}
SINTER_DEVICE void put_one(int32_t v, int n, int i, IntegerChunk<2>* c) {
  c->plane[0].w[i] |= (static_cast<uint32_t>(v) >> 8 & 0xff) << (8 * n);
  c->plane[1].w[i] |= ((static_cast<uint32_t>(v) & 0xff) ^ 0x80) << (8 * n);
}

// Returns four times one number, in all places or in one.
template <int kPlanes>
SINTER_DEVICE void fill_four(int32_t v, int i, IntegerChunk<kPlanes>* c) {
  const uint32_t low = (static_cast<uint32_t>(v) & 0xff) * 0x01010101u;
  if constexpr (kPlanes == 1) {
    c->plane[0].w[i] = low;
  } else {
    c->plane[0].w[i] = (static_cast<uint32_t>(v) >> 8 & 0xff) * 0x01010101u;
    c->plane[1].w[i] = low ^ 0x80808080u;
  }
}
template <int kPlanes>
SINTER_DEVICE void fill_sixteen(int32_t v, IntegerChunk<kPlanes>* c) {
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) fill_four(v, i, c);
}

}  // namespace sinter::cuda

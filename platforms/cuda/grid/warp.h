// Products of matrices by a warp (tensor cores), sums of a warp and a block.
//
// Fragments. A product of m16n8kK takes A of 16 rows, B of 8 columns. With g = lane / 4 and t = lane % 4, a
// lane holds of the sums (16x8) rows g and g + 8, columns 2t and 2t + 1: d[0], d[1] of row g, d[2], d[3] of
// row g + 8. Of A (row-major) it holds 32-bit words: a[0] row g, a[1] row g + 8, both from column w * t on,
// where w is the number of elements of a word; a[2], a[3] the same K / 2 columns further. Of B (column-major)
// b[0] is column g, from row w * t on, b[1] K / 2 rows further.
//
// load_matrices reads four matrices of 8 rows of 16 bytes from shared memory: lane l states the place of row
// l % 8 of matrix l / 8, and r[i] is word t of row g of matrix i. load_transposed, for elements of 16 bits:
// elements 2t and 2t + 1 of column g.
//
// Source: PTX ISA, mma.sync (m16n8k16 of 16-bit floats, m16n8k32 of bytes), ldmatrix.
#pragma once

#include "platforms/cuda/grid/floats.h"

namespace sinter::cuda {

#ifdef __CUDACC__

// Computes d += a * b, K = 16, float16 with float sums.
SINTER_DEVICE void multiply_float16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int k = 0; k < 2; ++k)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
#endif
}

#if __CUDA_ARCH__ < 800
namespace device {
// Returns d + the sum of products of the words' two bfloat16.
SINTER_DEVICE float add_bfloat16_products(uint32_t a, uint32_t b, float d) {
  d = fmaf(__uint_as_float(a << 16), __uint_as_float(b << 16), d);
  return fmaf(__uint_as_float(a & 0xffff0000u), __uint_as_float(b & 0xffff0000u), d);
}
// The part of multiply_bfloat16 below that is called, because a kernel of many products would be large. It is
// a template, because most kernels have none.
template <class Sum>
SINTER_CALLED Sum multiply_bfloat16_words(Sum d, uint4 a, uint2 b) {
  const int g = static_cast<int>(threadIdx.x & 31) / 4, t = static_cast<int>(threadIdx.x & 3);
  for (int half = 0; half < 2; ++half)
    for (int word = 0; word < 4; ++word) {
      const uint32_t low = __shfl_sync(0xffffffffu, half == 0 ? a.x : a.z, g * 4 + word);
      const uint32_t high = __shfl_sync(0xffffffffu, half == 0 ? a.y : a.w, g * 4 + word);
      const uint32_t left = __shfl_sync(0xffffffffu, half == 0 ? b.x : b.y, 2 * t * 4 + word);
      const uint32_t right = __shfl_sync(0xffffffffu, half == 0 ? b.x : b.y, (2 * t + 1) * 4 + word);
      d.x = add_bfloat16_products(low, left, d.x);
      d.y = add_bfloat16_products(low, right, d.y);
      d.z = add_bfloat16_products(high, left, d.z);
      d.w = add_bfloat16_products(high, right, d.w);
    }
  return d;
}
}  // namespace device
#endif

// Computes d += a * b, K = 16, bfloat16 with float sums. Devices before 8.0 do not have the instruction and
// use float arithmetic.
SINTER_DEVICE void multiply_bfloat16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const float4 sum = device::multiply_bfloat16_words(
      make_float4(d[0], d[1], d[2], d[3]), make_uint4(a[0], a[1], a[2], a[3]), make_uint2(b[0], b[1]));
  d[0] = sum.x, d[1] = sum.y, d[2] = sum.z, d[3] = sum.w;
#endif
}

// Computes d += a * b, K = 32, signed bytes with int32 sums.
SINTER_DEVICE void multiply_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int k = 0; k < 2; ++k)
    for (int row = 0; row < 2; ++row)
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+r"(d[2 * row]), "+r"(d[2 * row + 1])
                   : "r"(a[2 * k + row]), "r"(b[k]));
#endif
}

// Element `i` of `from` is at a multiple of 16 bytes.
template <class T>
SINTER_DEVICE void load_matrices(uint32_t (&r)[4], const Shared<T>& from, int i) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(from.data + i));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
template <class T>
SINTER_DEVICE void load_transposed(uint32_t (&r)[4], const Shared<T>& from, int i) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(from.data + i));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

#else

template <class T>
inline void load_matrices(uint32_t (&r)[4], const Shared<T>& from, int i) {
  const int mine = from.at + i * static_cast<int>(sizeof(T));
  emulator::read_shared(mine, 16, 16);
  for (int m = 0; m < 4; ++m) {
    const int row = shuffle(mine, m * 8 + lane() / 4);
    std::memcpy(&r[m], emulator::read_shared(row + lane() % 4 * 4, 4), 4);
  }
}
template <class T>
inline void load_transposed(uint32_t (&r)[4], const Shared<T>& from, int i) {
  const int mine = from.at + i * static_cast<int>(sizeof(T));
  emulator::read_shared(mine, 16, 16);
  for (int m = 0; m < 4; ++m)
    for (int j = 0; j < 2; ++j) {
      const int row = shuffle(mine, m * 8 + lane() % 4 * 2 + j);
      std::memcpy(reinterpret_cast<std::byte*>(&r[m]) + 2 * j, emulator::read_shared(row + lane() / 4 * 2, 2),
                  2);
    }
}

namespace host {

// Multiplies a warp's fragments, gathered from its lanes; Add(word of A, word of B, sum) adds the products of
// their elements.
template <class Sum, class Add>
inline void multiply(Sum (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Add add) {
  uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const std::byte* all = emulator::exchange(mine, sizeof(mine));
  const auto word = [&](int from, int i) {
    uint32_t v;
    std::memcpy(&v, all + static_cast<size_t>(from) * emulator::kExchangeBytes + static_cast<size_t>(i) * 4,
                4);
    return v;
  };
  const int g = lane() / 4, t = lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = i / 2, column = 2 * t + i % 2;
    for (int half = 0; half < 2; ++half)
      for (int w = 0; w < 4; ++w)
        d[i] = add(word(g * 4 + w, 2 * half + row), word(column * 4 + w, 4 + half), d[i]);
  }
}

}  // namespace host

inline void multiply_float16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host::multiply(d, a, b, [](uint32_t x, uint32_t y, float sum) {
    sum += widen(Float16{static_cast<uint16_t>(x)}) * widen(Float16{static_cast<uint16_t>(y)});
    return sum +
           widen(Float16{static_cast<uint16_t>(x >> 16)}) * widen(Float16{static_cast<uint16_t>(y >> 16)});
  });
}
inline void multiply_bfloat16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host::multiply(d, a, b, [](uint32_t x, uint32_t y, float sum) {
    sum += widen(BFloat16{static_cast<uint16_t>(x)}) * widen(BFloat16{static_cast<uint16_t>(y)});
    return sum +
           widen(BFloat16{static_cast<uint16_t>(x >> 16)}) * widen(BFloat16{static_cast<uint16_t>(y >> 16)});
  });
}
inline void multiply_int8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host::multiply(d, a, b, [](uint32_t x, uint32_t y, int32_t sum) {
    return dot4(static_cast<int32_t>(x), static_cast<int32_t>(y), sum);
  });
}

#endif

// ---- sums and other folds: in a fixed order, the same for every lane

template <class T, class F>
SINTER_DEVICE T fold_warp(T v, F combine) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v = combine(v, shuffle_xor(v, mask));
  return v;
}
// Folds a block's threads. `room` has an element for each warp, and is free for the next fold.
template <class T, class F>
SINTER_DEVICE T fold_block(T v, const Shared<T>& room, F combine) {
  v = fold_warp(v, combine);
  if (lane() == 0) room[warp_index()] = v;
  barrier();
  T all = room[0];
  for (int w = 1; w < block_threads() / kWarp; ++w) all = combine(all, static_cast<T>(room[w]));
  barrier();
  return all;
}

struct AddUp {
  template <class T>
  SINTER_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace sinter::cuda

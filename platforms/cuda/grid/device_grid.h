// grid.h for the device: CUDA's own built-ins by the names of this language.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "platforms/cuda/grid/portable.h"
#include "platforms/cuda/kernels/kernel_list.h"

#define SINTER_KERNEL(name, Arguments)                                                                   \
  static_assert(sizeof(Arguments) <= 4096);                                                              \
  static __device__ __forceinline__ void body_of_##name(const Arguments& a);                             \
  extern "C" __global__ void __launch_bounds__(sinter::cuda::threads_of(sinter::cuda::Kernel::k_##name)) \
      name(const __grid_constant__ Arguments a) {                                                        \
    sinter::cuda::wait_for_launch_before();                                                              \
    body_of_##name(a);                                                                                   \
  }                                                                                                      \
  static __device__ __forceinline__ void body_of_##name(const Arguments& a)

namespace sinter::cuda {

inline constexpr int kWarp = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

// Every kernel calls it first. A launch may begin while the one before it ends (Queue): its blocks then wait
// here until all results of that one are in memory. Only after that may the next launch's blocks begin.
SINTER_DEVICE void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// ---- the place of this thread

SINTER_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
SINTER_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }
SINTER_DEVICE int lane() { return static_cast<int>(threadIdx.x & 31); }
SINTER_DEVICE int warp_index() { return static_cast<int>(threadIdx.x >> 5); }
SINTER_DEVICE uint32_t block_x() { return blockIdx.x; }
SINTER_DEVICE uint32_t block_y() { return blockIdx.y; }
SINTER_DEVICE uint32_t block_z() { return blockIdx.z; }
SINTER_DEVICE uint32_t blocks_x() { return gridDim.x; }
// Return the number of this thread among all of a grid along x, and the count of these.
SINTER_DEVICE int64_t global_thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
SINTER_DEVICE int64_t global_threads() { return int64_t{gridDim.x} * blockDim.x; }

// ---- shared memory

// A part of the block's shared memory. At most 16 bytes are read or written at a time.
template <class T>
struct Shared {
  T* data;
  SINTER_DEVICE T& operator[](int i) const { return data[i]; }
  SINTER_DEVICE Shared operator+(int i) const { return {data + i}; }
  // Reads `V` (a struct of several T) at element i, which is a multiple of sizeof(V).
  template <class V>
  SINTER_DEVICE V load(int i) const {
    return *reinterpret_cast<const V*>(data + i);
  }
  template <class V>
  SINTER_DEVICE void store(int i, const V& v) const {
    *reinterpret_cast<V*>(data + i) = v;
  }
};
// Returns `count` elements, `offset` bytes behind the beginning (a multiple of 16).
template <class T>
SINTER_DEVICE Shared<T> shared_memory(int offset, int) {
  extern __shared__ __align__(128) unsigned char sinter_shared[];
  return {reinterpret_cast<T*>(sinter_shared + offset)};
}

// ---- barriers

SINTER_DEVICE void barrier() { __syncthreads(); }
SINTER_DEVICE void warp_barrier() { __syncwarp(); }

// ---- copies of 16 bytes from global to shared memory, which go on while the thread does

// Copies to element `i` of `to`, a multiple of 16 bytes. `bytes` is 16, or fewer, and the rest is zeros.
template <class T>
SINTER_DEVICE void copy_async(const Shared<T>& to, int i, const void* from, int bytes = 16) {
#if __CUDA_ARCH__ >= 800
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to.data + i));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
#else
  uint4 v = make_uint4(0, 0, 0, 0);
  if (bytes == 16) {
    v = *static_cast<const uint4*>(from);
  } else {
    for (int b = 0; b < bytes; ++b)
      reinterpret_cast<unsigned char*>(&v)[b] = static_cast<const unsigned char*>(from)[b];
  }
  *reinterpret_cast<uint4*>(to.data + i) = v;
#endif
}
// The one ends a batch of copies, the other waits until at most `N` batches are under way. A barrier still
// has to follow before other threads read what this one copied.
SINTER_DEVICE void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
SINTER_DEVICE void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// ---- exchanges within a warp, of types of 4 or 8 bytes

template <class T>
SINTER_DEVICE T shuffle(T v, int from_lane) {
  return __shfl_sync(kAllLanes, v, from_lane);
}
template <class T>
SINTER_DEVICE T shuffle_xor(T v, int mask) {
  return __shfl_xor_sync(kAllLanes, v, mask);
}
template <class T>
SINTER_DEVICE T shuffle_up(T v, int by) {
  return __shfl_up_sync(kAllLanes, v, by);
}
template <class T>
SINTER_DEVICE T shuffle_down(T v, int by) {
  return __shfl_down_sync(kAllLanes, v, by);
}
SINTER_DEVICE uint32_t ballot(bool v) { return __ballot_sync(kAllLanes, v); }

// ---- integers

// Returns c + the sum of the products of four signed bytes.
SINTER_DEVICE int32_t dot4(int32_t a, int32_t b, int32_t c) { return __dp4a(a, b, c); }
// Returns bytes of the eight of a (0 to 3) and b (4 to 7): byte i is byte (selector >> 4 i & 7).
SINTER_DEVICE uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  return __byte_perm(a, b, selector);
}

// ---- atomic operations on global memory. Results must not depend on their order.

template <class T>
SINTER_DEVICE T atomic_add(T* at, T v) {
  return atomicAdd(at, v);
}
template <class T>
SINTER_DEVICE T atomic_min(T* at, T v) {
  return atomicMin(at, v);
}
template <class T>
SINTER_DEVICE T atomic_max(T* at, T v) {
  return atomicMax(at, v);
}
SINTER_DEVICE int32_t atomic_exchange(int32_t* at, int32_t v) { return atomicExch(at, v); }

}  // namespace sinter::cuda

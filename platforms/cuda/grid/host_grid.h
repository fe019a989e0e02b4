// grid.h for the host: the functions that the emulator (platforms/cuda/emulator) has for a kernel.
//
// Accesses to shared memory are checked: they stay within the bytes of the launch, read only written bytes,
// and a barrier separates them from other threads' accesses to the same bytes. Those to global memory are
// ordinary ones, which the compiler reports to the emulator (emulator/global_accesses.cc).
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "platforms/cuda/emulator/block.h"
#include "platforms/cuda/grid/portable.h"
#include "platforms/cuda/kernels/kernel_list.h"

#define SINTER_KERNEL(name, Arguments)      \
  static_assert(sizeof(Arguments) <= 4096); \
  extern "C" void sinter_cuda_##name(const Arguments& a)

namespace sinter::cuda {

inline constexpr int kWarp = 32;

// ---- the place of this thread

inline int thread_index() { return emulator::here->thread; }
inline int block_threads() { return emulator::here->threads; }
inline int lane() { return thread_index() % kWarp; }
inline int warp_index() { return thread_index() / kWarp; }
inline uint32_t block_x() { return emulator::here->block[0]; }
inline uint32_t block_y() { return emulator::here->block[1]; }
inline uint32_t block_z() { return emulator::here->block[2]; }
inline uint32_t blocks_x() { return emulator::here->blocks[0]; }
inline int64_t global_thread() { return int64_t{block_x()} * block_threads() + thread_index(); }
inline int64_t global_threads() { return int64_t{blocks_x()} * block_threads(); }

// ---- shared memory

// An element of shared memory, whose reads and writes are checked.
template <class T>
class SharedElement {
 public:
  explicit SharedElement(int at) : at_(at) {}
  operator T() const {  // NOLINT(google-explicit-constructor)
    T v;
    std::memcpy(&v, emulator::read_shared(at_, sizeof(T)), sizeof(T));
    return v;
  }
  const SharedElement& operator=(T v) const {  // NOLINT
    std::memcpy(emulator::write_shared(at_, sizeof(T)), &v, sizeof(T));
    return *this;
  }
  const SharedElement& operator=(const SharedElement& v) const {
    return *this = static_cast<T>(v);
  }                                                                                         // NOLINT
  const SharedElement& operator+=(T v) const { return *this = static_cast<T>(*this) + v; }  // NOLINT

 private:
  int at_;  // in bytes
};

template <class T>
struct Shared {
  int at;  // in bytes
  SharedElement<T> operator[](int i) const { return SharedElement<T>(at + i * static_cast<int>(sizeof(T))); }
  Shared operator+(int i) const { return {at + i * static_cast<int>(sizeof(T))}; }
  template <class V>
  V load(int i) const {
    V v;
    std::memcpy(&v, emulator::read_shared(at + i * static_cast<int>(sizeof(T)), sizeof(V), alignof(V)),
                sizeof(V));
    return v;
  }
  template <class V>
  void store(int i, const V& v) const {
    std::memcpy(emulator::write_shared(at + i * static_cast<int>(sizeof(T)), sizeof(V), alignof(V)), &v,
                sizeof(V));
  }
};
template <class T>
inline Shared<T> shared_memory(int offset, int count) {
  emulator::claim_shared(offset, count * static_cast<int>(sizeof(T)));
  return {offset};
}

// ---- barriers

inline void barrier() { emulator::barrier(); }
inline void warp_barrier() { emulator::warp_barrier(); }

// ---- copies of 16 bytes from global to shared memory: the wait does them, so that a missing one is found

template <class T>
inline void copy_async(const Shared<T>& to, int i, const void* from, int bytes = 16) {
  emulator::copy_async(to.at + i * static_cast<int>(sizeof(T)), from, bytes);
}
inline void commit_copies() { emulator::commit_copies(); }
template <int N>
inline void wait_for_copies() {
  emulator::wait_for_copies(N);
}

// ---- exchanges within a warp

namespace host {
template <class T>
inline T from_lane(T v, int from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const std::byte* all = emulator::exchange(&v, sizeof(T));
  T other;
  std::memcpy(&other, all + static_cast<size_t>(from) * emulator::kExchangeBytes, sizeof(T));
  return other;
}
}  // namespace host

template <class T>
inline T shuffle(T v, int from_lane) {
  return host::from_lane(v, from_lane & 31);
}
template <class T>
inline T shuffle_xor(T v, int mask) {
  return host::from_lane(v, lane() ^ mask);
}
template <class T>
inline T shuffle_up(T v, int by) {
  return host::from_lane(v, lane() >= by ? lane() - by : lane());
}
template <class T>
inline T shuffle_down(T v, int by) {
  return host::from_lane(v, lane() + by < kWarp ? lane() + by : lane());
}
inline uint32_t ballot(bool v) {
  const uint32_t mine = v;
  const std::byte* all = emulator::exchange(&mine, sizeof(mine));
  uint32_t bits = 0;
  for (int i = 0; i < kWarp; ++i) {
    uint32_t one;
    std::memcpy(&one, all + static_cast<size_t>(i) * emulator::kExchangeBytes, sizeof(one));
    bits |= one << i;
  }
  return bits;
}

// ---- integers

inline int32_t dot4(int32_t a, int32_t b, int32_t c) {
  int64_t sum = c;
  for (int i = 0; i < 4; ++i) sum += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  return static_cast<int32_t>(sum);  // wraps, like the device
}
inline uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t v = 0;
  for (int i = 0; i < 4; ++i)
    v |= static_cast<uint32_t>(both >> (8 * (selector >> 4 * i & 7)) & 0xff) << 8 * i;
  return v;
}

// ---- atomic operations on global memory: one thread runs at a time

namespace host {
// Replaces the number at the address by f of it, and returns the old one.
template <class T, class F>
inline T change(T* at, F f) {
  T old;
  emulator::load_atomic(at, &old, sizeof(T));
  const T changed = f(old);
  emulator::store_atomic(at, &changed, sizeof(T));
  return old;
}
}  // namespace host

template <class T>
inline T atomic_add(T* at, T v) {
  return host::change(at, [v](T old) { return static_cast<T>(old + v); });
}
template <class T>
inline T atomic_min(T* at, T v) {
  return host::change(at, [v](T old) { return v < old ? v : old; });
}
template <class T>
inline T atomic_max(T* at, T v) {
  return host::change(at, [v](T old) { return v > old ? v : old; });
}
inline int32_t atomic_exchange(int32_t* at, int32_t v) {
  return host::change(at, [v](int32_t) { return v; });
}

}  // namespace sinter::cuda

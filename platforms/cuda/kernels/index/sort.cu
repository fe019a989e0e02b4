// Sorts lines of records by bitonic merges in shared memory and, for longer lines, in global memory. Source:
// Batcher, Sorting Networks and their Applications (1968). Halves are merged by comparing each record with
// its mirror image first, so that all runs ascend.
#include <type_traits>

#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/index/sort.h"

namespace sinter::cuda {
namespace {

// Returns a number whose order is that of elements. Zeros of both signs are equal, and so are all NaN, which
// are the largest.
template <class T>
SINTER_DEVICE uint64_t key_of(T v) {
  if constexpr (std::is_same_v<T, float>) {
    if (v != v) return 0xffffffffu;
    const uint32_t bits = bits_of(v == 0 ? 0.0f : v);
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  } else if constexpr (std::is_same_v<T, double>) {
    if (v != v) return kNoKey;
    const uint64_t bits = bits_of(v == 0 ? 0.0 : v), sign = uint64_t{1} << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<uint64_t>(v) ^ (std::is_signed_v<T> ? uint64_t{1} << 63 : 0);
  } else {
    return static_cast<uint32_t>(v) ^ (std::is_signed_v<T> ? 0x80000000u : 0u);
  }
}

template <class T>
SINTER_DEVICE uint64_t element_key(const SortChunksArguments& a, int64_t at) {
  const T v = load<T>(reinterpret_cast<const std::byte*>(a.x) + at * static_cast<int>(sizeof(T)));
  if constexpr (std::is_floating_point_v<T>) {
    if (a.filtered != 0) {
      bool counts = v == v;
      if (a.limit != nullptr)
        counts = v > static_cast<T>(a.limit_double != 0 ? load<double>(a.limit) : load<float>(a.limit));
      if (!counts) return kNoKey;
    }
  }
  const uint64_t key = key_of(v);
  if (a.descending == 0) return key;
  return sizeof(T) == 8 ? ~key : 0xffffffffu - key;
}

SINTER_DEVICE uint64_t key_at(const SortChunksArguments& a, int64_t at) {
  switch (a.type) {
    case DType::kFloat32:
      return element_key<float>(a, at);
    case DType::kFloat64:
      return element_key<double>(a, at);
    case DType::kBool:
      return load<uint8_t>(a.x + at) != 0 ? 1 : 0;
    default:
      return for_integer(a.type,
                         [&](auto type) { return element_key<typename decltype(type)::type>(a, at); });
  }
}

SINTER_DEVICE bool behind(uint64_t key, uint32_t number, uint64_t other_key, uint32_t other_number) {
  return key > other_key || (key == other_key && number > other_number);
}

// A block's records in shared memory.
struct Chunk {
  Shared<uint64_t> keys;
  Shared<uint32_t> numbers;

  SINTER_DEVICE explicit Chunk(int count)
      : keys(shared_memory<uint64_t>(0, count)),
        numbers(shared_memory<uint32_t>((count * 8 + 15) / 16 * 16, count)) {}
  // Brings records i and j > i into order.
  SINTER_DEVICE void order(int i, int j) const {
    const uint64_t key = keys[i], other_key = keys[j];
    const uint32_t number = numbers[i], other_number = numbers[j];
    if (!behind(key, number, other_key, other_number)) return;
    keys[i] = other_key, keys[j] = key;
    numbers[i] = other_number, numbers[j] = number;
  }
  // A barrier between steps whose pairs are within `span` and `next_span` records: a warp has 64 of its own.
  static SINTER_DEVICE void meet(int span, int next_span) {
    if (span > 2 * kWarp || next_span > 2 * kWarp)
      barrier();
    else
      warp_barrier();
  }
  // Sorts the runs of `size` that a step of size / 2 has left.
  SINTER_DEVICE void merge(int count, int size, int first_step) const {
    for (int step = first_step; step > 0; step /= 2) {
      for (int p = thread_index(); p < count / 2; p += block_threads()) {
        const int i = (p & ~(step - 1)) * 2 + (p & (step - 1));
        order(i, i + step);
      }
      meet(2 * step, step > 1 ? step : 2 * size);
    }
  }
  SINTER_DEVICE void sort(int count) const {
    for (int size = 2; size <= count; size *= 2) {
      const int half = size / 2;
      for (int p = thread_index(); p < count / 2; p += block_threads()) {
        const int begin = (p & ~(half - 1)) * 2, r = p & (half - 1);
        order(begin + r, begin + size - 1 - r);
      }
      meet(size, half > 1 ? half : 2 * size);
      merge(count, size, half / 2);
    }
  }
};

}  // namespace

SINTER_KERNEL(sort_chunks, SortChunksArguments) {
  const auto count = static_cast<int>(a.chunk);
  const Chunk chunk(count);
  const uint32_t all = a.lines * a.chunks.divisor;
  for (uint32_t n = block_x(); n < all; n += blocks_x()) {
    uint32_t in_line;
    const uint32_t line = a.chunks.divide(n, &in_line);
    uint32_t column;
    const uint32_t plane = a.inner.divide(line, &column);
    for (int i = thread_index(); i < count; i += block_threads()) {
      const uint32_t at = in_line * a.chunk + static_cast<uint32_t>(i);
      uint64_t key = kNoKey;
      uint32_t number = ~0u;
      if (at < a.length && a.x != nullptr) {
        number = at;
        key = key_at(a, (int64_t{plane} * a.length + at) * a.inner.divisor + column);
      } else if (at < a.length) {
        const int64_t record = int64_t{line} * a.from_pitch + at;
        key = a.from.keys[record], number = a.from.numbers[record];
      }
      chunk.keys[i] = key, chunk.numbers[i] = number;
    }
    barrier();
    chunk.sort(count);
    barrier();
    for (int i = thread_index(); i < static_cast<int>(a.keep); i += block_threads()) {
      const int64_t record = int64_t{line} * a.to_pitch + in_line * a.keep + static_cast<uint32_t>(i);
      a.to.keys[record] = chunk.keys[i];
      a.to.numbers[record] = chunk.numbers[i];
    }
    barrier();
  }
}

// Does a step between records that are farther from each other than a chunk is long.
SINTER_KERNEL(sort_merge_far, SortMergeArguments) {
  for (int64_t n = global_thread(); n < a.pairs; n += global_threads()) {
    const auto p = static_cast<uint32_t>(n);
    const uint32_t half = a.size / 2;
    int64_t i, j;
    if (a.step == 0) {
      const int64_t begin = int64_t{p & ~(half - 1)} * 2;
      const uint32_t r = p & (half - 1);
      i = begin + r, j = begin + a.size - 1 - r;
    } else {
      i = int64_t{p & ~(a.step - 1)} * 2 + (p & (a.step - 1));
      j = i + a.step;
    }
    const uint64_t key = a.records.keys[i], other_key = a.records.keys[j];
    const uint32_t number = a.records.numbers[i], other_number = a.records.numbers[j];
    if (!behind(key, number, other_key, other_number)) continue;
    a.records.keys[i] = other_key, a.records.keys[j] = key;
    a.records.numbers[i] = other_number, a.records.numbers[j] = number;
  }
}

// Does the rest of a merge, within chunks.
SINTER_KERNEL(sort_merge_near, SortMergeArguments) {
  const Chunk chunk(kSortChunk);
  const uint32_t all = a.pairs / (kSortChunk / 2);
  for (uint32_t n = block_x(); n < all; n += blocks_x()) {
    const int64_t begin = int64_t{n} * kSortChunk;
    for (int i = thread_index(); i < kSortChunk; i += block_threads())
      chunk.keys[i] = a.records.keys[begin + i], chunk.numbers[i] = a.records.numbers[begin + i];
    barrier();
    chunk.merge(kSortChunk, kSortChunk, kSortChunk / 2);
    barrier();
    for (int i = thread_index(); i < kSortChunk; i += block_threads())
      a.records.keys[begin + i] = chunk.keys[i], a.records.numbers[begin + i] = chunk.numbers[i];
    barrier();
  }
}

SINTER_KERNEL(top_k, TopKArguments) {
  for_width(a.width, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t n = global_thread(); n < a.size; n += global_threads()) {
      uint32_t column, rank;
      const uint32_t rest = a.inner.divide(static_cast<uint32_t>(n), &column);
      const int64_t plane = a.k.divide(rest, &rank);
      const uint32_t number = a.records.numbers[(plane * a.inner.divisor + column) * a.pitch + rank];
      if (a.indices != nullptr) a.indices[n] = number;
      if (a.values != nullptr) {
        const int64_t from = (plane * a.length + number) * a.inner.divisor + column;
        store(a.values + n * static_cast<int>(sizeof(T)), load<T>(a.x + from * static_cast<int>(sizeof(T))));
      }
    }
  });
}

}  // namespace sinter::cuda

// TensorView: a typed, strided window onto memory that it does not own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/checked.h"
#include "runtime/core/dtype.h"

namespace sinter {

inline constexpr int kMaxRank = 8;
inline constexpr size_t kBufferAlignment = 64;
// Bytes that kernels may read (never use) past the end of a buffer; regions are padded by at least this.
inline constexpr size_t kReadPadding = 64;

// dims are in storage order (channels-last for spatial values), strides in bytes (0 repeats, negative runs
// backwards). `data` is null while shapes are inferred. An absent operand has dtype kNone. Where `memory` is
// not 0, `data` is an address of a device, which only its backend can use.
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kNone;
  uint8_t rank = 0;
  bool constant = false;  // the bytes never change: kernels may pack them when prepared
  uint8_t memory = 0;     // 0: host memory; k: memory of the profile's backend k - 1 (Region.memory_kind)
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};

  bool present() const { return dtype != DType::kNone; }
  std::span<const int64_t> shape() const { return {dims, rank}; }

  // Returns the number of elements (1 for a scalar). It fits int64 in views that reach a kernel.
  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  // Returns the bytes of a dense tensor of these dims; packed types round up to whole bytes.
  int64_t dense_bytes() const { return (size() * bit_width(dtype) + 7) / 8; }

  bool dense() const {
    int64_t expected = static_cast<int64_t>(byte_width(dtype));
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i] != 1 && strides[i] != expected) return false;
      expected *= dims[i];
    }
    return true;
  }
  // Returns whether rows along the last axis are dense and equally far apart, one behind the other: pixels
  // that may alternate with others'. *step: elements from one row to the next. Elements take whole bytes.
  bool evenly_spaced(int64_t* step) const {
    const auto width = static_cast<int64_t>(byte_width(dtype));
    const int64_t length = rank > 0 ? dims[rank - 1] : 1;
    *step = length;
    if (width == 0) return dense();
    for (int i = 0; i < rank; ++i)
      if (dims[i] == 0) return true;
    if (length > 1 && strides[rank - 1] != width) return false;
    int64_t expected = 0;  // 0: no axis of rows yet
    for (int i = rank - 2; i >= 0; --i) {
      if (dims[i] == 1) continue;
      if (expected == 0) {
        if (strides[i] < length * width || strides[i] % width != 0) return false;
        *step = strides[i] / width;
        expected = strides[i];
      }
      if (strides[i] != expected) return false;
      expected *= dims[i];
    }
    return true;
  }
  void set_shape(std::span<const int64_t> shape) {
    rank = static_cast<uint8_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) dims[i] = shape[i];
    set_dense_strides();
  }
  void set_dense_strides() {
    int64_t step = static_cast<int64_t>(byte_width(dtype));
    for (int i = rank - 1; i >= 0; --i) strides[i] = step, step *= dims[i];
  }
  bool same_shape(const TensorView& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != other.dims[i]) return false;
    return true;
  }
  // Returns the elements of a dense tensor, or the first element of any.
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// Computes the dense byte count of the dims. Returns false on overflow or a negative dim.
[[nodiscard]] inline bool checked_bytes(DType dtype, std::span<const int64_t> dims, int64_t* bytes) {
  int64_t n = 1;
  for (const int64_t d : dims)
    if (d < 0 || !checked_mul(n, d, &n)) return false;
  if (!checked_mul<int64_t>(n, bit_width(dtype), &n) || !checked_add<int64_t>(n, 7, &n)) return false;
  *bytes = n / 8;
  return true;
}

}  // namespace sinter

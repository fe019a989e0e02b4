// Nests: loops over N strided operands of the same (broadcast) dims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/tensor_view.h"

namespace sinter {

// A nest: its dims are collapsed, which means that those of 1 are removed and neighbours that every operand
// walks as one are merged. If a dim is 0, `empty` is set.
template <int N>
struct Nest {
  int rank = 0;
  bool empty = false;
  int64_t dims[kMaxRank] = {};
  int64_t strides[N][kMaxRank] = {};
  std::byte* data[N] = {};

  // Adds an axis inside the present ones; `step` is each operand's byte stride along it.
  void push(int64_t dim, const int64_t (&step)[N]) {
    if (dim == 0) empty = true;
    if (dim == 1) return;
    if (rank > 0) {
      bool merges = true;
      for (int k = 0; k < N; ++k)
        if (strides[k][rank - 1] != step[k] * dim) merges = false;
      if (merges) {
        dims[rank - 1] *= dim;
        for (int k = 0; k < N; ++k) strides[k][rank - 1] = step[k];
        return;
      }
    }
    dims[rank] = dim;
    for (int k = 0; k < N; ++k) strides[k][rank] = step[k];
    ++rank;
  }
};

// Returns the stride of `v` along axis `axis` of a shape of rank `rank` that `v` broadcasts to.
inline int64_t broadcast_stride(const TensorView& v, int rank, int axis) {
  const int own = axis - (rank - v.rank);
  return own < 0 || v.dims[own] == 1 ? 0 : v.strides[own];
}

// Returns a nest over `dims`, to which every operand broadcasts. It is compiled once per number of operands,
// as Rows::next() is: the kernels' hundreds of loops would each have a copy.
template <int N>
[[gnu::noinline]] Nest<N> nest_of(std::span<const int64_t> dims, const TensorView* const (&operands)[N]) {
  Nest<N> nest;
  for (int k = 0; k < N; ++k) nest.data[k] = operands[k]->data;
  for (const int64_t d : dims)
    if (d == 0) nest.empty = true;
  if (nest.empty) return nest;
  const int rank = static_cast<int>(dims.size());
  for (int axis = 0; axis < rank; ++axis) {
    int64_t step[N];
    for (int k = 0; k < N; ++k) step[k] = broadcast_stride(*operands[k], rank, axis);
    nest.push(dims[axis], step);
  }
  return nest;
}
template <class... Views>
Nest<sizeof...(Views)> make_nest(std::span<const int64_t> dims, const Views&... views) {
  const TensorView* const operands[] = {&views...};
  return nest_of(dims, operands);
}

// Returns `v`, which broadcasts to `dims`, with exactly these dims: its stride is 0 where it repeats.
inline TensorView broadcast_view(const TensorView& v, std::span<const int64_t> dims) {
  TensorView wide = v;
  wide.rank = static_cast<uint8_t>(dims.size());
  for (int axis = 0; axis < wide.rank; ++axis) {
    wide.dims[axis] = dims[axis];
    wide.strides[axis] = broadcast_stride(v, wide.rank, axis);
  }
  return wide;
}

// Returns a nest over only those axes of the operands (all of the same rank and, on these axes, dims) whose
// bit in `axes` is set; the operands' addresses are the nest's `data`, to be moved as needed.
template <class... Views>
Nest<sizeof...(Views)> make_nest_over(uint32_t axes, const TensorView& shape, const Views&... views) {
  constexpr int kN = sizeof...(Views);
  const TensorView* operands[kN] = {&views...};
  Nest<kN> nest;
  for (int k = 0; k < kN; ++k) nest.data[k] = operands[k]->data;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if ((axes >> axis & 1) == 0) continue;
    int64_t step[kN];
    for (int k = 0; k < kN; ++k) step[k] = operands[k]->dims[axis] == 1 ? 0 : operands[k]->strides[axis];
    nest.push(shape.dims[axis], step);
  }
  return nest;
}

// Walks the innermost rows of a nest that is not empty, in row-major order. A scalar is one row of one
// element.
template <int N>
struct Rows {
  const Nest<N>& nest;
  int outer;  // axes outside the row
  int64_t count;
  std::byte* at[N];
  int64_t step[N];  // in bytes, along the row
  int64_t index[kMaxRank] = {};

  explicit Rows(const Nest<N>& walked)
      : nest(walked), outer(nest.rank > 0 ? nest.rank - 1 : 0), count(nest.rank > 0 ? nest.dims[outer] : 1) {
    for (int k = 0; k < N; ++k) {
      at[k] = nest.data[k];
      step[k] = nest.rank > 0 ? nest.strides[k][outer] : 0;
    }
  }

  // Moves to the next row; false after the last.
  [[gnu::noinline]] bool next() {
    for (int axis = outer - 1; axis >= 0; --axis) {
      for (int k = 0; k < N; ++k) at[k] += nest.strides[k][axis];
      if (++index[axis] < nest.dims[axis]) return true;
      for (int k = 0; k < N; ++k) at[k] -= nest.strides[k][axis] * nest.dims[axis];
      index[axis] = 0;
    }
    return false;
  }
};

// Calls f(pointers, strides, count) for each innermost row: std::byte* const (&pointers)[N], const int64_t
// (&strides)[N] in bytes.
template <int N, class F>
void for_each_row(const Nest<N>& nest, F&& f) {
  if (nest.empty) return;
  Rows<N> rows(nest);
  do {
    f(static_cast<std::byte* const(&)[N]>(rows.at), static_cast<const int64_t(&)[N]>(rows.step), rows.count);
  } while (rows.next());
}

// Calls f(pointers) for each element, in row-major order.
template <int N, class F>
void for_each_element(const Nest<N>& nest, F&& f) {
  for_each_row(nest, [&](std::byte* const(&row)[N], const int64_t(&step)[N], int64_t count) {
    std::byte* at[N];
    for (int k = 0; k < N; ++k) at[k] = row[k];
    for (int64_t i = 0; i < count; ++i) {
      f(static_cast<std::byte* const(&)[N]>(at));
      for (int k = 0; k < N; ++k) at[k] += step[k];
    }
  });
}

}  // namespace sinter

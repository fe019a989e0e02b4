// The walk of a reduction over listed axes: the elements of each set, and the order in which they are folded.
#pragma once

#include <cmath>

#include "runtime/kernels/support.h"

namespace sinter {

// Writes the listed axes as a bit set; refuses repeats.
inline Status axes_mask(const IntList& axes, int rank, uint32_t* mask) {
  *mask = 0;
  for (const int64_t axis : axes) {
    SINTER_RETURN_IF_ERROR(check_axis(axis, rank));
    SINTER_RETURN_UNLESS((*mask >> axis & 1) == 0, invalid("axis %a is listed twice", axis));
    *mask |= 1u << axis;
  }
  return ok_status();
}

// Writes the result's dims.
inline Status reduced_dims(const TensorView& x, const IntList& axes, int64_t keepdims, Dims* dims) {
  SINTER_RETURN_IF_ERROR(check_code(keepdims, 2));
  uint32_t mask = 0;
  SINTER_RETURN_IF_ERROR(axes_mask(axes, x.rank, &mask));
  for (int axis = 0; axis < x.rank; ++axis) {
    if ((mask >> axis & 1) == 0)
      SINTER_RETURN_IF_ERROR(dims->push(x.dims[axis]));
    else if (keepdims != 0)
      SINTER_RETURN_IF_ERROR(dims->push(1));
  }
  return ok_status();
}

// The two nests of the walk: `kept` visits (output element, first input element of its set), `set` the input
// elements of one set.
struct ReduceWalk {
  Nest<2> kept;
  Nest<1> set;
  int64_t count = 1;  // elements of a set
};

inline ReduceWalk make_reduce_walk(const OpCall& call, const IntList& axes, bool keepdims) {
  const TensorView &x = call.in(0), &y = call.out(0);
  uint32_t mask = 0;
  for (const int64_t axis : axes) mask |= 1u << axis;
  ReduceWalk walk;
  walk.kept.data[0] = y.data, walk.kept.data[1] = x.data;
  int out_axis = 0;
  for (int axis = 0; axis < x.rank; ++axis) {
    if ((mask >> axis & 1) == 0) {
      walk.kept.push(x.dims[axis], {y.strides[out_axis], x.strides[axis]});
      ++out_axis;
    } else {
      if (keepdims) ++out_axis;
      walk.count *= x.dims[axis];
      walk.set.push(x.dims[axis], {x.strides[axis]});
    }
  }
  return walk;
}

// Folds every set of elements of type X: Acc start(), void step(Acc&, X), Y finish(Acc, count) of `f`.
template <class Y, class X, class F>
void fold_sets(ReduceWalk walk, const F& f) {
  const auto inner = [](const auto& nest, int k) {
    return nest.rank > 0 ? std::abs(nest.strides[k][nest.rank - 1]) : 0;
  };
  if (walk.set.rank > 0 && (walk.kept.rank == 0 || inner(walk.set, 0) <= inner(walk.kept, 1))) {
    // A set's elements are near one another, so that sets follow each other.
    for_each_element(walk.kept, [&](std::byte* const(&p)[2]) {
      walk.set.data[0] = p[1];
      typename F::Acc acc = f.start();
      for_each_row(walk.set, [&](std::byte* const(&q)[1], const int64_t(&s)[1], int64_t n) {
        for (int64_t i = 0; i < n; ++i) f.step(acc, load<X>(q[0] + i * s[0]));
      });
      store<Y>(p[0], f.finish(acc, walk.count));
    });
    return;
  }
  // Neighbouring sets are interleaved (channels-last averages), so that some are folded at a time, each in
  // the same order.
  constexpr int64_t kBlock = 64;
  for_each_row(walk.kept, [&](std::byte* const(&p)[2], const int64_t(&s)[2], int64_t n) {
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t block = std::min(kBlock, n - first);
      typename F::Acc acc[kBlock];
      for (int64_t j = 0; j < block; ++j) acc[j] = f.start();
      walk.set.data[0] = p[1] + first * s[1];
      for_each_element(walk.set, [&](std::byte* const(&q)[1]) {
        for (int64_t j = 0; j < block; ++j) f.step(acc[j], load<X>(q[0] + j * s[1]));
      });
      for (int64_t j = 0; j < block; ++j) store<Y>(p[0] + (first + j) * s[0], f.finish(acc[j], walk.count));
    }
  });
}

}  // namespace sinter

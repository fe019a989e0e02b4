// Common parts of the reference kernels: element access, dtype dispatch, loops over strided operands, and the
// checks used by inference. Header-only; needs no memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "runtime/backend/kernel.h"
#include "runtime/core/built.h"
#include "runtime/kernels/half.h"

namespace sinter {

// ---- element access: any alignment, any aliasing; a bool is true unless it is zero.

template <class T>
inline T load(const std::byte* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return *p != std::byte{0};
  } else {
    T v;
    std::memcpy(&v, p, sizeof(T));
    return v;
  }
}
template <class T>
inline void store(std::byte* p, T v) {
  if constexpr (std::is_same_v<T, bool>)
    *p = static_cast<std::byte>(v ? 1 : 0);
  else
    std::memcpy(p, &v, sizeof(T));
}

// ---- dtype dispatch: for_float(x.dtype, [&](auto tag) { using T = typename decltype(tag)::type; ...; return
// ok_status(); })

template <class T>
struct Tag {
  using type = T;
};

inline Status dtype_not_computed(DType t) {
  return unsupported("this kernel does not compute in %A", static_cast<int64_t>(t));
}

// f for elements of type t, stored as T, where this build computes in t.
template <DType t, class T, class F>
Status for_built(F&& f) {
  if constexpr (is_built(t))
    return f(Tag<T>{});
  else
    return dtype_not_computed(t);
}

template <class F>
Status for_float(DType t, F&& f) {
  if (t == DType::kFloat32) return for_built<DType::kFloat32, float>(f);
  if (t == DType::kFloat64) return for_built<DType::kFloat64, double>(f);
  return dtype_not_computed(t);
}
// And float16 and bfloat16 elements, computed in float (Computed<Half>).
template <class F>
Status for_float_or_half(DType t, F&& f) {
  if (t == DType::kFloat16) return for_built<DType::kFloat16, Half>(f);
  return t == DType::kBFloat16 ? for_built<DType::kBFloat16, BHalf>(f) : for_float(t, f);
}
template <class F>
Status for_integer(DType t, F&& f) {
  switch (t) {
    case DType::kInt8:
      return for_built<DType::kInt8, int8_t>(f);
    case DType::kUint8:
      return for_built<DType::kUint8, uint8_t>(f);
    case DType::kInt16:
      return for_built<DType::kInt16, int16_t>(f);
    case DType::kUint16:
      return for_built<DType::kUint16, uint16_t>(f);
    case DType::kInt32:
      return for_built<DType::kInt32, int32_t>(f);
    case DType::kUint32:
      return for_built<DType::kUint32, uint32_t>(f);
    case DType::kInt64:
      return for_built<DType::kInt64, int64_t>(f);
    case DType::kUint64:
      return for_built<DType::kUint64, uint64_t>(f);
    default:
      return dtype_not_computed(t);
  }
}
// float, double, all integers.
template <class F>
Status for_number(DType t, F&& f) {
  return is_integer(t) ? for_integer(t, f) : for_float(t, f);
}
template <class F>
Status for_number_or_half(DType t, F&& f) {
  return is_integer(t) ? for_integer(t, f) : for_float_or_half(t, f);
}
template <class F>
Status for_number_or_bool(DType t, F&& f) {
  return t == DType::kBool ? for_built<DType::kBool, bool>(f) : for_number(t, f);
}
// An unsigned integer as wide as an element, for kernels that only move bytes.
template <class F>
Status for_width(size_t bytes, F&& f) {
  if (is_built_width(1) && bytes == 1) return f(Tag<uint8_t>{});
  if (is_built_width(2) && bytes == 2) return f(Tag<uint16_t>{});
  if (is_built_width(4) && bytes == 4) return f(Tag<uint32_t>{});
  if (is_built_width(8) && bytes == 8) return f(Tag<uint64_t>{});
  return unsupported("elements of %a bytes are not moved", static_cast<int64_t>(bytes));
}

// ---- nests: loops over N operands of the same (broadcast) dims

// The dims are collapsed: those of 1 are removed and neighbours that every operand walks as one are merged.
// If a dim is 0, `empty` is set.
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

// Stride of `v` along axis `axis` of a shape of rank `rank` that `v` broadcasts to.
inline int64_t broadcast_stride(const TensorView& v, int rank, int axis) {
  const int own = axis - (rank - v.rank);
  return own < 0 || v.dims[own] == 1 ? 0 : v.strides[own];
}

// A nest over `dims`, to which every operand broadcasts. Compiled once per number of operands, as
// Rows::next() is: the kernels' hundreds of loops would each have a copy.
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

// `v`, which broadcasts to `dims`, with exactly these dims: stride 0 where it repeats.
inline TensorView broadcast_view(const TensorView& v, std::span<const int64_t> dims) {
  TensorView wide = v;
  wide.rank = static_cast<uint8_t>(dims.size());
  for (int axis = 0; axis < wide.rank; ++axis) {
    wide.dims[axis] = dims[axis];
    wide.strides[axis] = broadcast_stride(v, wide.rank, axis);
  }
  return wide;
}

// A nest over only those axes of the operands (all of the same rank and, on these axes, dims) whose bit in
// `axes` is set; the operands' addresses are the nest's `data`, to be moved as needed.
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

// The innermost rows of a nest that is not empty, in row-major order. A scalar is one row of one element.
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

template <class T>
inline Computed<T> computed(T v) {
  return v;
}

// ---- element-wise maps. An input may be the output's own memory; each element is read before it is written.

// out[i] = f(in[i]). Halves are float to f.
template <class Out, class In, class F>
void map_unary(const TensorView& out, const TensorView& in, F f) {
  constexpr int64_t kOut = sizeof(Out), kIn = sizeof(In);
  for_each_row(make_nest(out.shape(), out, in),
               [&](std::byte* const(&p)[2], const int64_t(&s)[2], int64_t n) {
                 std::byte *y = p[0], *x = p[1];
                 if (s[0] == kOut && s[1] == kIn) {
                   for (int64_t i = 0; i < n; ++i)
                     store<Out>(y + i * kOut, static_cast<Out>(f(computed(load<In>(x + i * kIn)))));
                 } else {
                   for (int64_t i = 0; i < n; ++i)
                     store<Out>(y + i * s[0], static_cast<Out>(f(computed(load<In>(x + i * s[1])))));
                 }
               });
}

// out[i] = f(a[i], b[i]) with broadcasting.
template <class Out, class A, class B, class F>
void map_binary(const TensorView& out, const TensorView& a, const TensorView& b, F f) {
  constexpr int64_t kOut = sizeof(Out), kA = sizeof(A), kB = sizeof(B);
  for_each_row(
      make_nest(out.shape(), out, a, b), [&](std::byte* const(&p)[3], const int64_t(&s)[3], int64_t n) {
        std::byte *y = p[0], *x = p[1], *z = p[2];
        if (s[0] == kOut && s[1] == kA && s[2] == kB) {
          for (int64_t i = 0; i < n; ++i)
            store<Out>(y + i * kOut,
                       static_cast<Out>(f(computed(load<A>(x + i * kA)), computed(load<B>(z + i * kB)))));
        } else if (s[0] == kOut && s[1] == kA && s[2] == 0) {
          const Computed<B> scalar = computed(load<B>(z));
          for (int64_t i = 0; i < n; ++i)
            store<Out>(y + i * kOut, static_cast<Out>(f(computed(load<A>(x + i * kA)), scalar)));
        } else {
          for (int64_t i = 0; i < n; ++i)
            store<Out>(y + i * s[0],
                       static_cast<Out>(f(computed(load<A>(x + i * s[1])), computed(load<B>(z + i * s[2])))));
        }
      });
}

// Copies n bytes, 1 to 32, read before any is written: two overlapping words instead of a call.
template <class Word>
inline void copy_word_pair(std::byte* to, const std::byte* from, size_t n) {
  Word first, last;
  std::memcpy(&first, from, sizeof(Word));
  std::memcpy(&last, from + n - sizeof(Word), sizeof(Word));
  std::memcpy(to, &first, sizeof(Word));
  std::memcpy(to + n - sizeof(Word), &last, sizeof(Word));
}
inline void copy_short(std::byte* to, const std::byte* from, size_t n) {
  struct Words {
    uint64_t a, b;
  };
  if (n > 16) return copy_word_pair<Words>(to, from, n);
  if (n >= 8) return copy_word_pair<uint64_t>(to, from, n);
  if (n >= 4) return copy_word_pair<uint32_t>(to, from, n);
  if (n >= 2) return copy_word_pair<uint16_t>(to, from, n);
  *to = *from;
}

// Copies `in` (broadcast to out's dims) to `out`; whole-byte elements of the same width. Memory may coincide
// exactly but must not overlap otherwise.
inline Status copy_elements(const TensorView& out, const TensorView& in) {
  return for_width(byte_width(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int64_t kWidth = sizeof(T);
    Nest<2> nest = make_nest(out.shape(), out, in);
    // Short contiguous rows (pixels of few channels) are the elements of a nest without them.
    const int last = nest.rank - 1;
    if (last > 0 && nest.strides[0][last] == kWidth && nest.strides[1][last] == kWidth &&
        nest.dims[last] * kWidth <= 32) {
      const auto bytes = static_cast<size_t>(nest.dims[last] * kWidth);
      --nest.rank;
      for_each_row(nest, [&](std::byte* const(&p)[2], const int64_t(&s)[2], int64_t n) {
        for (int64_t i = 0; i < n; ++i) copy_short(p[0] + i * s[0], p[1] + i * s[1], bytes);
      });
      return ok_status();
    }
    for_each_row(nest, [&](std::byte* const(&p)[2], const int64_t(&s)[2], int64_t n) {
      if (s[0] == kWidth && s[1] == kWidth) {
        if (p[0] != p[1]) std::memcpy(p[0], p[1], static_cast<size_t>(n * kWidth));
      } else {
        for (int64_t i = 0; i < n; ++i) store<T>(p[0] + i * s[0], load<T>(p[1] + i * s[1]));
      }
    });
    return ok_status();
  });
}

// ---- checks for infer

// A shape being put together.
struct Dims {
  int rank = 0;
  int64_t d[kMaxRank] = {};

  Dims() = default;
  explicit Dims(std::span<const int64_t> shape) : rank(static_cast<int>(shape.size())) {
    std::copy(shape.begin(), shape.end(), d);
  }
  Status push(int64_t dim) {
    SINTER_RETURN_UNLESS(rank < kMaxRank, unsupported("the result has more than %a axes", kMaxRank));
    d[rank++] = dim;
    return ok_status();
  }
  std::span<const int64_t> span() const { return {d, static_cast<size_t>(rank)}; }
};

// Sets output i if it is used. Refuses dims that are negative or whose strides would not fit (a zero beside
// huge dims included).
inline Status give_output(OpCall& call, size_t i, DType dtype, std::span<const int64_t> dims) {
  int64_t n = 1;
  for (const int64_t d : dims)
    SINTER_RETURN_UNLESS(d >= 0 && checked_mul(n, std::max<int64_t>(d, 1), &n),
                         invalid("the result is too large"));
  int64_t bits = 0;
  SINTER_RETURN_UNLESS(dims.size() <= kMaxRank && checked_mul<int64_t>(n, 64, &bits),
                       invalid("the result is too large"));
  set_output(call, i, dtype, dims);
  return ok_status();
}

inline Status check_axis(int64_t axis, int rank) {
  SINTER_RETURN_UNLESS(axis >= 0 && axis < rank,
                       invalid("axis %a is outside a value of rank %b", axis, rank));
  return ok_status();
}
// `value` is one of 0 .. count - 1.
inline Status check_code(int64_t value, int64_t count) {
  SINTER_RETURN_UNLESS(value >= 0 && value < count, invalid("code %a is not below %b", value, count));
  return ok_status();
}
inline Status check_same_dtype(const OpCall& call, size_t i, size_t j) {
  SINTER_RETURN_UNLESS(call.in(i).dtype == call.in(j).dtype,
                       invalid("its type %A differs from that of input %b",
                               static_cast<int64_t>(call.in(i).dtype), static_cast<int64_t>(j))
                           .of_input(i));
  return ok_status();
}
// Float types that activations may have in a graph (they compute after widening).
constexpr bool is_compute_float(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16;
}
// The type in which elements of a type are computed: Computed<T>.
constexpr DType computed_dtype(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}
constexpr bool is_number(DType t) { return is_compute_float(t) || is_integer(t); }
// Of an operand that is not rounded to the 16 bits of operand 0.
inline Status check_computed_dtype(const OpCall& call, size_t i) {
  const DType t = computed_dtype(call.in(0).dtype);
  SINTER_RETURN_UNLESS(call.in(i).dtype == t,
                       invalid("its type %A is not %B, in which the operation computes",
                               static_cast<int64_t>(call.in(i).dtype), static_cast<int64_t>(t))
                           .of_input(i));
  return ok_status();
}
inline Status check_dtype(const OpCall& call, size_t i, bool allowed) {
  SINTER_RETURN_UNLESS(allowed, unsupported("its type %A is not one that the operation takes",
                                            static_cast<int64_t>(call.in(i).dtype))
                                    .of_input(i));
  return ok_status();
}

// *dims becomes the common (NumPy) broadcast shape of *dims and `shape`.
inline Status broadcast_into(Dims* dims, std::span<const int64_t> shape) {
  Dims result;
  const int own = static_cast<int>(shape.size());
  result.rank = std::max(dims->rank, own);
  for (int i = 0; i < result.rank; ++i) {
    const int from_a = i - (result.rank - dims->rank), from_b = i - (result.rank - own);
    const int64_t a = from_a < 0 ? 1 : dims->d[from_a], b = from_b < 0 ? 1 : shape[from_b];
    SINTER_RETURN_UNLESS(a == b || a == 1 || b == 1, invalid("dims %a and %b do not broadcast", a, b));
    result.d[i] = a == 1 ? b : a;
  }
  *dims = result;
  return ok_status();
}
// `shape` broadcasts to `dims` without changing it.
inline Status check_broadcasts_to(std::span<const int64_t> shape, std::span<const int64_t> dims) {
  Dims joint(dims);
  SINTER_RETURN_IF_ERROR(broadcast_into(&joint, shape));
  SINTER_RETURN_UNLESS(std::equal(dims.begin(), dims.end(), joint.d, joint.d + joint.rank),
                       invalid("the value does not broadcast one way"));
  return ok_status();
}
// Output 0 is like input 0.
inline Status infer_like_input(OpCall& call) {
  return give_output(call, 0, call.in(0).dtype, call.in(0).shape());
}
// As above; input 0 has a type of floats that kernels compute in.
inline Status infer_float(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(call.in(0).dtype)));
  return infer_like_input(call);
}

// ---- integer arithmetic that wraps

template <class T>
constexpr T wrap_add(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}
template <class T>
constexpr T wrap_sub(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
}
// uint16 products would overflow int, so they are made in uint64.
template <class T>
constexpr T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace sinter

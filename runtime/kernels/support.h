// Common parts of the reference kernels: element access, dtype dispatch, and maps over elements. Header-only;
// needs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/core/built.h"
#include "runtime/kernels/half.h"
#include "runtime/kernels/infer_checks.h"
#include "runtime/kernels/nest.h"

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

// Calls f for elements of type t, stored as T, where this build computes in t.
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
// The types of for_float, and float16 and bfloat16 elements, which are computed in float (Computed<Half>).
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
// The types are float, double and all integers.
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
// Calls f with an unsigned integer as wide as an element, for kernels that only move bytes.
template <class F>
Status for_width(size_t bytes, F&& f) {
  if (is_built_width(1) && bytes == 1) return f(Tag<uint8_t>{});
  if (is_built_width(2) && bytes == 2) return f(Tag<uint16_t>{});
  if (is_built_width(4) && bytes == 4) return f(Tag<uint32_t>{});
  if (is_built_width(8) && bytes == 8) return f(Tag<uint64_t>{});
  return unsupported("elements of %a bytes are not moved", static_cast<int64_t>(bytes));
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

// Copies n bytes, 1 to 32, which are read before any is written: two overlapping words instead of a call.
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

// Copies `in` (broadcast to out's dims) to `out`, both of whole-byte elements of one width. Memory may
// coincide exactly but must not overlap otherwise.
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

// ---- arithmetic: floats as they are, integers wrap (in uint64, for uint16 products would overflow int)

template <class T, class F>
constexpr T wrapped(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>)
    return f(a, b);
  else
    return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}
template <class T>
constexpr T wrap_add(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x + y; });
}
template <class T>
constexpr T wrap_sub(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x - y; });
}
template <class T>
constexpr T wrap_mul(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x * y; });
}

}  // namespace sinter

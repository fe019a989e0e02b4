// Transpose of dense tensors: axes are merged, then either whole rows move, or tiles of the two axes that are
// contiguous on one side each.
#include <cstring>

#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/transpose.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// N x N elements in N vectors. Interleaving vectors k and k + N / 2 rotates the bits of (row, column) by one;
// as many rotations as a row number has bits swap the two.
template <class T, size_t N>
HWY_INLINE void transpose_block(const T* from, size_t from_stride, T* to, size_t to_stride) {
  const hn::FixedTag<T, N> d;
  hn::Vec<decltype(d)> a[N], b[N];
  HWY_UNROLL(16)
  for (size_t k = 0; k < N; ++k) a[k] = hn::LoadU(d, from + k * from_stride);
  HWY_UNROLL(16)
  for (size_t bit = 1; bit < N; bit *= 2) {
    HWY_UNROLL(16)
    for (size_t k = 0; k < N / 2; ++k) {
      b[2 * k] = hn::InterleaveLower(d, a[k], a[k + N / 2]);
      b[2 * k + 1] = hn::InterleaveUpper(d, a[k], a[k + N / 2]);
    }
    HWY_UNROLL(16)
    for (size_t k = 0; k < N; ++k) a[k] = b[k];
  }
  HWY_UNROLL(16)
  for (size_t k = 0; k < N; ++k) hn::StoreU(a[k], d, to + k * to_stride);
}

// to[i * to_stride + j] = from[i + j * from_stride], i < m, j < n. The last blocks overlap others.
template <class T>
HWY_INLINE void transpose_tile(const T* from, size_t from_stride, T* to, size_t to_stride, size_t m,
                               size_t n) {
  constexpr size_t kN = 16 / sizeof(T);
  if (m < kN || n < kN) {
    for (size_t j = 0; j < n; ++j)
      for (size_t i = 0; i < m; ++i) to[i * to_stride + j] = from[i + j * from_stride];
    return;
  }
  for (size_t j = 0; j < n; j += kN) {
    if (j + kN > n) j = n - kN;
    for (size_t i = 0; i < m; i += kN) {
      if (i + kN > m) i = m - kN;
      transpose_block<T, kN>(from + j * from_stride + i, from_stride, to + i * to_stride + j, to_stride);
    }
  }
}

void transpose1(const uint8_t* from, size_t from_stride, uint8_t* to, size_t to_stride, size_t m, size_t n) {
  transpose_tile(from, from_stride, to, to_stride, m, n);
}
void transpose2(const uint16_t* from, size_t from_stride, uint16_t* to, size_t to_stride, size_t m,
                size_t n) {
  transpose_tile(from, from_stride, to, to_stride, m, n);
}
void transpose4(const uint32_t* from, size_t from_stride, uint32_t* to, size_t to_stride, size_t m,
                size_t n) {
  transpose_tile(from, from_stride, to, to_stride, m, n);
}

// Three rows of m numbers to m triples, and back: images of three channels.
template <class T>
HWY_INLINE void interleave3(const T* from, size_t from_stride, T* to, size_t m) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= m; i += lanes)
    hn::StoreInterleaved3(hn::LoadU(d, from + i), hn::LoadU(d, from + from_stride + i),
                          hn::LoadU(d, from + 2 * from_stride + i), d, to + 3 * i);
  for (; i < m; ++i)
    for (size_t k = 0; k < 3; ++k) to[3 * i + k] = from[k * from_stride + i];
}
template <class T>
HWY_INLINE void deinterleave3(const T* from, T* to, size_t to_stride, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto a = hn::Zero(d), b = a, c = a;
    hn::LoadInterleaved3(d, from + 3 * j, a, b, c);
    hn::StoreU(a, d, to + j);
    hn::StoreU(b, d, to + to_stride + j);
    hn::StoreU(c, d, to + 2 * to_stride + j);
  }
  for (; j < n; ++j)
    for (size_t k = 0; k < 3; ++k) to[k * to_stride + j] = from[3 * j + k];
}

void interleave3_1(const uint8_t* from, size_t from_stride, uint8_t* to, size_t m) {
  interleave3(from, from_stride, to, m);
}
void interleave3_4(const uint32_t* from, size_t from_stride, uint32_t* to, size_t m) {
  interleave3(from, from_stride, to, m);
}
void deinterleave3_1(const uint8_t* from, uint8_t* to, size_t to_stride, size_t n) {
  deinterleave3(from, to, to_stride, n);
}
void deinterleave3_4(const uint32_t* from, uint32_t* to, size_t to_stride, size_t n) {
  deinterleave3(from, to, to_stride, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(transpose1);
HWY_EXPORT(transpose2);
HWY_EXPORT(transpose4);
HWY_EXPORT(interleave3_1);
HWY_EXPORT(interleave3_4);
HWY_EXPORT(deinterleave3_1);
HWY_EXPORT(deinterleave3_4);

// The kernels for elements of T.
template <class T>
struct For;
template <>
struct For<uint8_t> {
  static auto tile() { return HWY_DYNAMIC_POINTER(transpose1); }
  static auto interleave() { return HWY_DYNAMIC_POINTER(interleave3_1); }
  static auto deinterleave() { return HWY_DYNAMIC_POINTER(deinterleave3_1); }
};
template <>
struct For<uint16_t> {
  static auto tile() { return HWY_DYNAMIC_POINTER(transpose2); }
};
template <>
struct For<uint32_t> {
  static auto tile() { return HWY_DYNAMIC_POINTER(transpose4); }
  static auto interleave() { return HWY_DYNAMIC_POINTER(interleave3_4); }
  static auto deinterleave() { return HWY_DYNAMIC_POINTER(deinterleave3_4); }
};

// Output axes, outermost first, merged where they are neighbours on both sides; strides in elements.
struct Moves {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, from[kMaxRank] = {}, to[kMaxRank] = {};
};

Moves moves_of(const OpCall& call) {
  const TensorView& x = call.in(0);
  const auto& perm = call.attrs<TransposeAttrs>().perm;
  int64_t strides[kMaxRank] = {};
  int64_t step = 1;
  for (int i = x.rank - 1; i >= 0; --i) strides[i] = step, step *= x.dims[i];
  Moves m;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t dim = x.dims[perm[i]], stride = strides[perm[i]];
    if (dim == 1) continue;
    if (m.rank > 0 && m.from[m.rank - 1] == stride * dim) {
      m.dims[m.rank - 1] *= dim, m.from[m.rank - 1] = stride;
      continue;
    }
    m.dims[m.rank] = dim, m.from[m.rank] = stride;
    ++m.rank;
  }
  step = 1;
  for (int i = m.rank - 1; i >= 0; --i) m.to[i] = step, step *= m.dims[i];
  return m;
}

// Offsets of combination `index` of the axes that are not in `skip`.
void locate(const Moves& m, uint32_t skip, int64_t index, int64_t* from, int64_t* to) {
  *from = *to = 0;
  for (int i = m.rank - 1; i >= 0; --i) {
    if ((skip >> i & 1) != 0) continue;
    const int64_t at = index % m.dims[i];
    index /= m.dims[i];
    *from += at * m.from[i], *to += at * m.to[i];
  }
}

template <class T>
void move_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t m, int64_t n) {
  if constexpr (sizeof(T) <= 4) {
    For<T>::tile()(from, static_cast<size_t>(from_stride), to, static_cast<size_t>(to_stride),
                   static_cast<size_t>(m), static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) to[i * to_stride + j] = from[i + j * from_stride];
  }
}

template <class T>
void transpose(const OpCall& call, RunContext& context) {
  const T* x = call.in(0).as<const T>();
  T* y = call.out(0).as<T>();
  const int64_t size = call.out(0).size();
  if (size == 0) return;
  const Moves m = moves_of(call);
  if (m.rank <= 1) {
    if (x != y) std::memcpy(y, x, static_cast<size_t>(size) * sizeof(T));
    return;
  }
  const int last = m.rank - 1;
  if (m.from[last] == 1) {  // rows stay whole
    const int64_t length = m.dims[last];
    parallel_for(context.threads, size / length, std::max<int64_t>(16384 / length, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     int64_t from = 0, to = 0;
                     locate(m, 1u << last, row, &from, &to);
                     std::memcpy(y + to, x + from, static_cast<size_t>(length) * sizeof(T));
                   }
                 });
    return;
  }
  int a = 0;  // the axis that is contiguous in the input; `last` is contiguous in the output
  while (m.from[a] != 1) ++a;
  const int64_t lines = size / (m.dims[a] * m.dims[last]);
  if constexpr (sizeof(T) == 4 || sizeof(T) == 1) {
    const bool triples = m.dims[last] == 3 && m.to[a] == 3, planes = m.dims[a] == 3 && m.from[last] == 3;
    if (triples || planes) {
      constexpr int64_t kRun = 4096;
      const int64_t length = triples ? m.dims[a] : m.dims[last], runs = divide_up(length, kRun);
      parallel_for(context.threads, lines * runs, 2, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          int64_t from = 0, to = 0;
          locate(m, 1u << last | 1u << a, unit / runs, &from, &to);
          const int64_t i = unit % runs * kRun;
          const auto count = static_cast<size_t>(std::min(kRun, length - i));
          if (triples)
            For<T>::interleave()(x + from + i, static_cast<size_t>(m.from[last]), y + to + 3 * i, count);
          else
            For<T>::deinterleave()(x + from + 3 * i, y + to + i, static_cast<size_t>(m.to[a]), count);
        }
      });
      return;
    }
  }
  constexpr int64_t kEdge = sizeof(T) == 1 ? 64 : 32;
  const int64_t a_tiles = divide_up(m.dims[a], kEdge), b_tiles = divide_up(m.dims[last], kEdge);
  const int64_t outer = size / (m.dims[a] * m.dims[last]);
  parallel_for(context.threads, outer * a_tiles * b_tiles, 16, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t from = 0, to = 0;
      locate(m, 1u << last | 1u << a, tile / (a_tiles * b_tiles), &from, &to);
      const int64_t i = tile / b_tiles % a_tiles * kEdge, j = tile % b_tiles * kEdge;
      move_tile(x + from + i + j * m.from[last], m.from[last], y + to + i * m.to[a] + j, m.to[a],
                std::min(kEdge, m.dims[a] - i), std::min(kEdge, m.dims[last] - j));
    }
  });
}

Status accept_transpose(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).dense() && call.out(0).dense(),
                       unsupported("the simd kernel takes dense operands"));
  SINTER_RETURN_UNLESS(byte_width(call.in(0).dtype) != 0, unsupported("packed elements are not moved"));
  return ok_status();
}

Status run_transpose(const OpCall& call, RunContext& context) {
  switch (byte_width(call.in(0).dtype)) {
    case 1:
      return transpose<uint8_t>(call, context), ok_status();
    case 2:
      return transpose<uint16_t>(call, context), ok_status();
    case 4:
      return transpose<uint32_t>(call, context), ok_status();
    default:
      return transpose<uint64_t>(call, context), ok_status();
  }
}

}  // namespace

const Kernel kTransposeKernel = {Op::kTranspose, nullptr, nullptr, run_transpose, accept_transpose};

}  // namespace sinter::simd
#endif  // HWY_ONCE

// Transpose of dense tensors: axes are merged, then whole rows move, or two to four rows alternate, or tiles
// of the two axes that are contiguous on one side each.
#include <cstring>

#include "platforms/simd/move/copy_rows.h"
#include "platforms/simd/move/interleave.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/move/transpose.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/move/interleave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes N x N elements in N vectors. Interleaving vectors k and k + N / 2 rotates the bits of (row,
// column) by one; as many rotations as a row number has bits swap the two.
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

// Computes to[i * to_stride + j] = from[i + j * from_stride], i < m, j < n. The last blocks overlap others.
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

// Block q of vector k is four columns of row 4 q + k, where `from` is row k.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const uint32_t* from, size_t stride) {
  constexpr size_t kLanes = HWY_MAX_LANES_D(D);
  if constexpr (kLanes == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, from + kLanes / 2 * stride, stride),
                       load_blocks(half, from, stride));
  }
}

// Transposes four columns of as many rows as a vector has lanes.
template <class D>
HWY_INLINE void transpose_strip(D d, const uint32_t* from, size_t from_stride, uint32_t* to,
                                size_t to_stride) {
  const auto a = load_blocks(d, from, from_stride), b = load_blocks(d, from + from_stride, from_stride),
             c = load_blocks(d, from + 2 * from_stride, from_stride),
             e = load_blocks(d, from + 3 * from_stride, from_stride);
  const auto ac = hn::InterleaveLower(d, a, c), be = hn::InterleaveLower(d, b, e);
  const auto ac2 = hn::InterleaveUpper(d, a, c), be2 = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, ac, be), d, to);
  hn::StoreU(hn::InterleaveUpper(d, ac, be), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, ac2, be2), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, ac2, be2), d, to + 3 * to_stride);
}

// Does the work of transpose_tile by strips; n is at least the lanes of D, m at least 4.
template <class D>
HWY_INLINE void transpose_strips(D d, const uint32_t* from, size_t from_stride, uint32_t* to,
                                 size_t to_stride, size_t m, size_t n) {
  constexpr size_t kLanes = HWY_MAX_LANES_D(D);
  for (size_t j = 0; j < n; j += kLanes) {
    if (j + kLanes > n) j = n - kLanes;
    for (size_t i = 0; i < m; i += 4) {
      if (i + 4 > m) i = m - 4;
      transpose_strip(d, from + j * from_stride + i, from_stride, to + i * to_stride + j, to_stride);
    }
  }
}

void transpose4(const uint32_t* from, size_t from_stride, uint32_t* to, size_t to_stride, size_t m,
                size_t n) {
  if (m < 4 || n < 4) return transpose_tile(from, from_stride, to, to_stride, m, n);
  if (const hn::CappedTag<uint32_t, 16> d; HWY_MAX_LANES_D(decltype(d)) > 8 && n >= hn::Lanes(d))
    return transpose_strips(d, from, from_stride, to, to_stride, m, n);
  if (const hn::CappedTag<uint32_t, 8> d; HWY_MAX_LANES_D(decltype(d)) > 4 && n >= hn::Lanes(d))
    return transpose_strips(d, from, from_stride, to, to_stride, m, n);
  transpose_strips(hn::FixedTag<uint32_t, 4>(), from, from_stride, to, to_stride, m, n);
}

template <class T>
HWY_INLINE void alternate(const Alternation& w, const T* from, T* to) {
  if (w.rows == 2) return alternate_as<2>(w, from, to);
  if (w.rows == 3) return alternate_as<3>(w, from, to);
  alternate_as<4>(w, from, to);
}
void alternate1(const Alternation& w, const uint8_t* from, uint8_t* to) { alternate(w, from, to); }
void alternate2(const Alternation& w, const uint16_t* from, uint16_t* to) { alternate(w, from, to); }
void alternate4(const Alternation& w, const uint32_t* from, uint32_t* to) { alternate(w, from, to); }

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(transpose1);
HWY_EXPORT(transpose2);
HWY_EXPORT(transpose4);
HWY_EXPORT(alternate1);
HWY_EXPORT(alternate2);
HWY_EXPORT(alternate4);

// The kernels for elements of T.
template <class T>
struct For;
template <>
struct For<uint8_t> {
  static auto tile() { return HWY_DYNAMIC_POINTER(transpose1); }
  static auto alternate() { return HWY_DYNAMIC_POINTER(alternate1); }
};
template <>
struct For<uint16_t> {
  static auto tile() { return HWY_DYNAMIC_POINTER(transpose2); }
  static auto alternate() { return HWY_DYNAMIC_POINTER(alternate2); }
};
template <>
struct For<uint32_t> {
  static auto tile() { return HWY_DYNAMIC_POINTER(transpose4); }
  static auto alternate() { return HWY_DYNAMIC_POINTER(alternate4); }
};

constexpr int64_t kMovePiece = 16384;  // elements that are worth a thread

// The output axes, outermost first, merged where they are neighbours on both sides; strides in elements.
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

// Finds the offsets of combination `index` of the axes that are not in `skip`.
void locate(const Moves& m, uint32_t skip, int64_t index, int64_t* from, int64_t* to) {
  *from = *to = 0;
  for (int i = m.rank - 1; i >= 0; --i) {
    if ((skip >> i & 1) != 0) continue;
    const int64_t at = index % m.dims[i];
    index /= m.dims[i];
    *from += at * m.from[i], *to += at * m.to[i];
  }
}

// Calls visit(from, to, count, from_step, to_step) for runs of combinations of the axes that are not in
// `skip`: neighbours along the innermost of them.
template <class Visit>
void for_runs(const Moves& m, uint32_t skip, ThreadPool* threads, int64_t grain, Visit visit) {
  int64_t units = 1;
  int inner = -1;
  for (int i = 0; i < m.rank; ++i)
    if ((skip >> i & 1) == 0) units *= m.dims[i], inner = i;
  const int64_t length = inner < 0 ? 1 : m.dims[inner];
  const int64_t from_step = inner < 0 ? 0 : m.from[inner], to_step = inner < 0 ? 0 : m.to[inner];
  parallel_for(threads, units, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin, count = 0; unit < end; unit += count) {
      count = std::min(length - unit % length, end - unit);
      int64_t from = 0, to = 0;
      locate(m, skip, unit, &from, &to);
      visit(from, to, count, from_step, to_step);
    }
  });
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

// Long rows are cut, so that threads share them.
template <class T>
void move_alternating(const Moves& m, int a, bool joins, const T* x, T* y, ThreadPool* threads) {
  const int last = m.rank - 1;
  const int64_t rows = joins ? m.dims[last] : m.dims[a], length = joins ? m.dims[a] : m.dims[last];
  const int64_t piece = std::min(length, kMovePiece / 4), pieces = divide_up(length, piece);
  const auto kernel = For<T>::alternate();
  const auto move = [&](int64_t from, int64_t to, int64_t first, int64_t n, int64_t count, int64_t from_step,
                        int64_t to_step) {
    const Alternation w = {static_cast<size_t>(rows),
                           static_cast<size_t>(n),
                           static_cast<size_t>(joins ? m.from[last] : m.to[a]),
                           static_cast<size_t>(count),
                           from_step,
                           to_step,
                           joins};
    kernel(w, x + from + first * (joins ? 1 : rows), y + to + first * (joins ? rows : 1));
  };
  const uint32_t skip = 1u << last | 1u << a;
  if (pieces == 1) {
    for_runs(m, skip, threads, kMovePiece / (rows * length),
             [&](int64_t from, int64_t to, int64_t count, int64_t from_step, int64_t to_step) {
               move(from, to, 0, length, count, from_step, to_step);
             });
    return;
  }
  const int64_t outer = m.dims[0] * m.to[0] / (rows * length);  // all elements over those of a unit
  parallel_for(threads, outer * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t from = 0, to = 0;
      locate(m, skip, unit / pieces, &from, &to);
      const int64_t first = unit % pieces * piece;
      move(from, to, first, std::min(piece, length - first), 1, 0, 0);
    }
  });
}

// Returns an edge of tiles that divides n evenly, up to a multiple of 16.
int64_t tile_edge(int64_t n, int64_t most) { return (even_piece(n, most) + 15) / 16 * 16; }

template <class T>
void transpose(const OpCall& call, RunContext& context) {
  const T* x = call.in(0).as<const T>();
  T* y = call.out(0).as<T>();
  const int64_t size = call.out(0).size();
  if (size == 0) return;
  const Moves m = moves_of(call);
  const int last = m.rank - 1;
  if (m.rank <= 1) {
    if (x != y) std::memcpy(y, x, static_cast<size_t>(size) * sizeof(T));
    return;
  }
  if (m.from[last] == 1) {  // rows stay whole
    const int64_t length = m.dims[last];
    constexpr int64_t kWidth = sizeof(T);
    for_runs(m, 1u << last, context.threads, kMovePiece / length,
             [&](int64_t from, int64_t to, int64_t count, int64_t from_step, int64_t to_step) {
               copy_rows({reinterpret_cast<const std::byte*>(x + from), reinterpret_cast<std::byte*>(y + to),
                          from_step * kWidth, to_step * kWidth, static_cast<size_t>(length * kWidth),
                          static_cast<size_t>(count)});
             });
    return;
  }
  int a = 0;  // the axis that is contiguous in the input; `last` is contiguous in the output
  while (m.from[a] != 1) ++a;
  if constexpr (sizeof(T) <= 4) {
    const bool joins = m.dims[last] <= 4 && m.to[a] == m.dims[last],
               parts = m.dims[a] <= 4 && m.from[last] == m.dims[a];
    if (joins || parts) return move_alternating(m, a, joins, x, y, context.threads);
  }
  constexpr int64_t kEdge = sizeof(T) <= 4 ? 64 : 32;
  const int64_t a_edge = tile_edge(m.dims[a], kEdge), b_edge = tile_edge(m.dims[last], kEdge);
  const int64_t a_tiles = divide_up(m.dims[a], a_edge), b_tiles = divide_up(m.dims[last], b_edge);
  const int64_t outer = size / (m.dims[a] * m.dims[last]);
  const int64_t tile_size = std::min(a_edge, m.dims[a]) * std::min(b_edge, m.dims[last]);
  parallel_for(context.threads, outer * a_tiles * b_tiles, std::max<int64_t>(kMovePiece / tile_size, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t tile = begin; tile < end; ++tile) {
                   int64_t from = 0, to = 0;
                   locate(m, 1u << last | 1u << a, tile / (a_tiles * b_tiles), &from, &to);
                   const int64_t i = tile / b_tiles % a_tiles * a_edge, j = tile % b_tiles * b_edge;
                   move_tile(x + from + i + j * m.from[last], m.from[last], y + to + i * m.to[a] + j, m.to[a],
                             std::min(a_edge, m.dims[a] - i), std::min(b_edge, m.dims[last] - j));
                 }
               });
}

Status accept_transpose(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).dense() && call.out(0).dense(),
                       unsupported("the simd kernel takes dense operands"));
  return accept_whole_bytes(call);
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

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

// to[i * to_stride + j] = from[i + j * from_stride] for 4-byte elements, i < m, j < n.
void transpose4(const uint32_t* from, size_t from_stride, uint32_t* to, size_t to_stride, size_t m,
                size_t n) {
  const hn::FixedTag<uint32_t, 4> d;
  size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const uint32_t* p = from + j * from_stride;
    uint32_t* q = to + j;
    size_t i = 0;
    for (; i + 4 <= m; i += 4, p += 4, q += 4 * to_stride) {
      const auto r0 = hn::LoadU(d, p), r1 = hn::LoadU(d, p + from_stride);
      const auto r2 = hn::LoadU(d, p + 2 * from_stride), r3 = hn::LoadU(d, p + 3 * from_stride);
      const auto a = hn::InterleaveLower(d, r0, r2), b = hn::InterleaveLower(d, r1, r3);
      const auto c = hn::InterleaveUpper(d, r0, r2), e = hn::InterleaveUpper(d, r1, r3);
      hn::StoreU(hn::InterleaveLower(d, a, b), d, q);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, q + to_stride);
      hn::StoreU(hn::InterleaveLower(d, c, e), d, q + 2 * to_stride);
      hn::StoreU(hn::InterleaveUpper(d, c, e), d, q + 3 * to_stride);
    }
    for (; i < m; ++i, ++p, q += to_stride)
      for (size_t k = 0; k < 4; ++k) q[k] = p[k * from_stride];
  }
  for (; j < n; ++j)
    for (size_t i = 0; i < m; ++i) to[i * to_stride + j] = from[i + j * from_stride];
}

// Three rows of m numbers to m triples, and back: images of three channels.
void interleave3(const uint32_t* from, size_t from_stride, uint32_t* to, size_t m) {
  const hn::ScalableTag<uint32_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= m; i += lanes)
    hn::StoreInterleaved3(hn::LoadU(d, from + i), hn::LoadU(d, from + from_stride + i),
                          hn::LoadU(d, from + 2 * from_stride + i), d, to + 3 * i);
  for (; i < m; ++i)
    for (size_t k = 0; k < 3; ++k) to[3 * i + k] = from[k * from_stride + i];
}
void deinterleave3(const uint32_t* from, uint32_t* to, size_t to_stride, size_t n) {
  const hn::ScalableTag<uint32_t> d;
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

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(transpose4);
HWY_EXPORT(interleave3);
HWY_EXPORT(deinterleave3);

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
  if constexpr (sizeof(T) == 4) {
    HWY_DYNAMIC_DISPATCH(transpose4)
    (from, static_cast<size_t>(from_stride), to, static_cast<size_t>(to_stride), static_cast<size_t>(m),
     static_cast<size_t>(n));
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
  if constexpr (sizeof(T) == 4) {
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
          if (triples) HWY_DYNAMIC_DISPATCH(interleave3)
          (x + from + i, static_cast<size_t>(m.from[last]), y + to + 3 * i, count);
          else HWY_DYNAMIC_DISPATCH(deinterleave3)(x + from + 3 * i, y + to + i, static_cast<size_t>(m.to[a]),
                                                   count);
        }
      });
      return;
    }
  }
  constexpr int64_t kEdge = 32;
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
  SINTER_CHECK(call.in(0).dense() && call.out(0).dense(),
               unsupported("the simd kernel takes dense operands"));
  SINTER_CHECK(byte_width(call.in(0).dtype) != 0, unsupported("packed elements are not moved"));
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

#include "platforms/simd/move/copy_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/move/copy_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls move(from, to) for every row.
template <class Move>
HWY_INLINE void for_each_row(const RowCopy& c, Move move) {
  const std::byte* from = c.from;
  std::byte* to = c.to;
  if (c.index != nullptr) {
    for (size_t i = 0; i < c.rows; ++i, to += c.to_step) move(from + c.index[i] * c.from_step, to);
    return;
  }
  for (size_t i = 0; i < c.rows; ++i, from += c.from_step, to += c.to_step) move(from, to);
}

// Copies rows of one word, or of two that overlap.
template <class Word>
HWY_INLINE void copy_words(const RowCopy& c) {
  const size_t rest = c.bytes - sizeof(Word);
  if (rest == 0)
    return for_each_row(c, [](const std::byte* from, std::byte* to) SINTER_SIMD_LAMBDA {
      Word word;
      std::memcpy(&word, from, sizeof(Word));
      std::memcpy(to, &word, sizeof(Word));
    });
  for_each_row(c, [=](const std::byte* from, std::byte* to) SINTER_SIMD_LAMBDA {
    Word first, last;
    std::memcpy(&first, from, sizeof(Word));
    std::memcpy(&last, from + rest, sizeof(Word));
    std::memcpy(to, &first, sizeof(Word));
    std::memcpy(to + rest, &last, sizeof(Word));
  });
}

// Copies rows of at least one vector; the last one overlaps the one before.
template <class D>
HWY_INLINE void copy_vectors(D d, const RowCopy& c) {
  const size_t lanes = hn::Lanes(d), last = c.bytes - lanes;
  for_each_row(c, [=](const std::byte* from, std::byte* to) SINTER_SIMD_LAMBDA {
    const auto* x = reinterpret_cast<const uint8_t*>(from);
    auto* y = reinterpret_cast<uint8_t*>(to);
    const auto end = hn::LoadU(d, x + last);
    for (size_t i = 0; i < last; i += lanes) hn::StoreU(hn::LoadU(d, x + i), d, y + i);
    hn::StoreU(end, d, y + last);
  });
}

void copy_short_rows(const RowCopy& c) {
  const hn::ScalableTag<uint8_t> d;
  if (c.bytes >= hn::Lanes(d)) return copy_vectors(d, c);
  if (c.bytes >= 16) return copy_vectors(hn::FixedTag<uint8_t, 16>(), c);
  if (c.bytes >= 8) return copy_words<uint64_t>(c);
  if (c.bytes >= 4) return copy_words<uint32_t>(c);
  if (c.bytes >= 2) return copy_words<uint16_t>(c);
  copy_words<uint8_t>(c);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(copy_short_rows);

constexpr size_t kLongRow = 1024;         // from here on memcpy is as fast
constexpr int64_t kCopyPiece = 64 << 10;  // bytes that are worth a thread

// The axes of both views, merged where both walk them as one, outermost first; strides in bytes.
struct CopyAxes {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, from[kMaxRank] = {}, to[kMaxRank] = {};

  CopyAxes(const TensorView& out, const TensorView& in) {
    for (int i = 0; i < out.rank; ++i) {
      const int own = i - (out.rank - in.rank);
      const int64_t dim = out.dims[i], step = own < 0 || in.dims[own] == 1 ? 0 : in.strides[own];
      if (dim == 1) continue;
      const int outer = rank - 1;
      if (rank > 0 && from[outer] == step * dim && to[outer] == out.strides[i] * dim)
        dims[outer] *= dim;
      else
        dims[rank++] = dim;
      from[rank - 1] = step, to[rank - 1] = out.strides[i];
    }
  }
};

}  // namespace

void copy_rows(const RowCopy& c) {
  if (c.bytes < kLongRow) return HWY_DYNAMIC_DISPATCH(copy_short_rows)(c);
  for (size_t i = 0; i < c.rows; ++i) {
    const auto row = static_cast<int64_t>(i);
    const std::byte* from = c.from + (c.index != nullptr ? c.index[i] : row) * c.from_step;
    std::byte* to = c.to + row * c.to_step;
    if (from != to) std::memcpy(to, from, c.bytes);
  }
}

void copy_view(const TensorView& out, const TensorView& in, ThreadPool* threads) {
  if (out.size() == 0) return;
  CopyAxes axes(out, in);
  const auto width = static_cast<int64_t>(byte_width(out.dtype));
  int64_t bytes = width;
  const int last = axes.rank - 1;
  if (axes.rank > 0 && axes.from[last] == width && axes.to[last] == width) {
    bytes *= axes.dims[last];
    --axes.rank;
  }
  if (axes.rank == 0) {
    parallel_for(threads, bytes, kCopyPiece, [&](int64_t begin, int64_t end) {
      copy_rows({in.data + begin, out.data + begin, 0, 0, static_cast<size_t>(end - begin), 1});
    });
    return;
  }
  const int inner = axes.rank - 1;
  const int64_t length = axes.dims[inner];
  parallel_for(threads, out.size() * width / bytes, std::max<int64_t>(kCopyPiece / bytes, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin, count = 0; row < end; row += count) {
                   const int64_t first = row % length;
                   count = std::min(length - first, end - row);
                   int64_t from = first * axes.from[inner], to = first * axes.to[inner], rest = row / length;
                   for (int i = inner - 1; i >= 0; --i) {
                     const int64_t at = rest % axes.dims[i];
                     rest /= axes.dims[i];
                     from += at * axes.from[i], to += at * axes.to[i];
                   }
                   copy_rows({in.data + from, out.data + to, axes.from[inner], axes.to[inner],
                              static_cast<size_t>(bytes), static_cast<size_t>(count)});
                 }
               });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE

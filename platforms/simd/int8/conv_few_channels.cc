// The instruction sets with dot products of bytes, too.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/int8/conv_few_channels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/conv_few_channels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/multiply-inl.h"
#include "platforms/simd/pixel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Other kernels fill vectors with twice as many channels; on ARM, they take a whole panel of 8.
bool q_narrow_gains(const Geometry& g) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
  return g.out_channels <= (HWY_TARGET_IS_NEON ? lanes : lanes / 2);
}

void pack_q_narrow(const Geometry& g, int64_t x_zero, const QWeights& from, std::byte* packed) {
  const int64_t columns = narrow_columns(g), words = narrow_words(g, kCell);
  auto* weights = reinterpret_cast<WeightElement*>(packed);
  auto* bias = reinterpret_cast<int32_t*>(packed) + words;
  auto* multipliers = reinterpret_cast<float*>(bias + columns);
  for (int64_t i = 0; i < words * kCell; ++i) weights[i] = 0;
  for (int64_t c = 0; c < columns; ++c) {
    bias[c] = 0, multipliers[c] = 0.0f;
    if (c >= g.out_channels) continue;
    const uint32_t sum =
        pack_narrow_words(g, from.weights + c * from.column_step, from.depth_step, c, weights);
    const uint32_t shift = kCentred ? 0 : sum * static_cast<uint32_t>(kShift + static_cast<int32_t>(x_zero));
    bias[c] = static_cast<int32_t>((from.bias != nullptr ? static_cast<uint32_t>(from.bias[c]) : 0) - shift);
    multipliers[c] = from.multipliers[c * from.multiplier_step];
  }
}

template <class T>
struct NarrowSums {
  using Sum = V32;
  const int32_t* bias;
  const float* multipliers;
  Finish<T> value;

  HWY_INLINE V32 start(int64_t c) const { return hn::Set(D32(), bias[c]); }
  static HWY_INLINE V32 add(V32 cells, V32 word, V32 sum) { return add_products(cells, word, sum); }
  HWY_INLINE auto finish(int64_t c, V32 sum) const {
    Finish<T> of_column = value;
    of_column.multiplier = hn::Set(DF(), multipliers[c]);
    return of_column(sum);
  }
};

template <class T>
HWY_INLINE void run_as(const QNarrow& n, const std::byte* packed, const QBox& at, std::byte* scratch) {
  const Geometry& g = n.g;
  const auto* words = reinterpret_cast<const int32_t*>(packed);
  const int32_t* bias = words + narrow_words(g, kCell);
  const NarrowSums<T> sums{bias, reinterpret_cast<const float*>(bias + narrow_columns(g)),
                           Finish<T>(n.result)};
  const auto load = [&](int64_t i0, int64_t i1, Element* line) {
    convert_line(g, input_line(g, at, n.x, i0, i1), at.begin[2] * g.stride[2] - g.pad[2], at.line,
                 static_cast<int32_t>(n.x_zero), line);
  };
  run_narrow_box<NarrowSums<T>, T, Element>(g, at, words, sums, scratch, static_cast<T*>(n.result.y), load);
}

void run_q_narrow(const QNarrow& n, const std::byte* packed, const QBox& at, std::byte* scratch) {
  if (n.result.type == DType::kInt8)
    run_as<int8_t>(n, packed, at, scratch);
  else if (n.result.type == DType::kFloat32)
    run_as<float>(n, packed, at, scratch);
  else
    run_as<int16_t>(n, packed, at, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q_narrow_gains);
HWY_EXPORT(pack_q_narrow);
HWY_EXPORT(run_q_narrow);

bool q_narrow_gains(const Geometry& g) { return HWY_DYNAMIC_DISPATCH(q_narrow_gains)(g); }

bool choose_q_narrow_boxes(QNarrow* n, int64_t threads) {
  return choose_narrow_boxes(n->g, divide_up(n->g.in_channels, 2), threads, &n->boxes);
}

bool q_narrow_packed_bytes(const QNarrow& n, int64_t* bytes) {
  const Geometry& g = n.g;
  int64_t taps = 0;
  return checked_mul(g.kernel[0], g.kernel[1], &taps) && checked_mul(taps, g.kernel[2], &taps) &&
         checked_mul(taps, divide_up(g.in_channels, 2) * 4 * kNarrowChannels, bytes) &&
         checked_add(*bytes, kNarrowChannels * 8, bytes);
}

bool q_narrow_scratch_bytes(const QNarrow& n, int64_t* bytes) {
  int64_t pairs = 0, quads = 0;
  if (!narrow_scratch_bytes(n.g, n.boxes, 2, &pairs) || !narrow_scratch_bytes(n.g, n.boxes, 4, &quads))
    return false;
  *bytes = std::max(pairs, quads);
  return true;
}

void pack_q_narrow(const Geometry& g, int64_t x_zero, const QWeights& from, std::byte* packed) {
  HWY_DYNAMIC_DISPATCH(pack_q_narrow)(g, x_zero, from, packed);
}

void run_q_narrow(const QNarrow& n, const std::byte* packed, const QBox& box, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(run_q_narrow)(n, packed, box, scratch);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE

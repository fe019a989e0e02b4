// The filters of a Winograd convolution: transformed in double, rounded once, and packed into panels for each
// position.
#include "platforms/simd/float/winograd.h"
#include "runtime/backend/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/winograd_filters.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The input channels that are transformed together, in loops that compilers turn into vectors. Sums have
// three terms, in order, so that every instruction set gives the same bits.
constexpr int64_t kFilterGroup = 8;

// Transforms channels from `channel` on of one filter, [3, 3, channels] at w, to the column at `to` of a
// panel of each position.
template <int kPairs>
HWY_NOINLINE void pack_filter(const float* w, int64_t channels, int64_t channel, int64_t width, float* to,
                              int64_t position) {
  constexpr int kInputs = Winograd<kPairs>::kInputs;
  const int64_t count = channels - channel < kFilterGroup ? channels - channel : kFilterGroup;
  double g[9][kFilterGroup] = {}, lines[3][kFilterGroup], sum[kFilterGroup];
  for (int64_t tap = 0; tap < 9; ++tap)
    for (int64_t l = 0; l < count; ++l) g[tap][l] = static_cast<double>(w[tap * channels + channel + l]);
  for (int i = 0; i < kInputs; ++i) {
    const double* row = kWinograd<kPairs>.filter[i];
    for (int b = 0; b < 3; ++b)
      for (int64_t l = 0; l < kFilterGroup; ++l)
        lines[b][l] = row[0] * g[b][l] + row[1] * g[3 + b][l] + row[2] * g[6 + b][l];
    for (int j = 0; j < kInputs; ++j) {
      const double* column = kWinograd<kPairs>.filter[j];
      for (int64_t l = 0; l < kFilterGroup; ++l)
        sum[l] = column[0] * lines[0][l] + column[1] * lines[1][l] + column[2] * lines[2][l];
      float* at = to + (i * kInputs + j) * position;
      for (int64_t l = 0; l < count; ++l) at[l * width] = static_cast<float>(sum[l]);
    }
  }
}

// Packs panels first .. end - 1 of every position.
void pack_filters(int64_t tile, const float* filters, int64_t columns, int64_t channels, int64_t width,
                  float* packed, int64_t position, int64_t first, int64_t end) {
  const int64_t positions = (tile + 2) * (tile + 2);
  for (int64_t panel = first; panel < end; ++panel) {
    const int64_t valid = columns - panel * width < width ? columns - panel * width : width;
    for (int64_t c = 0; c < channels; c += kFilterGroup) {
      float* to = packed + (panel * channels + c) * width;
      for (int64_t n = 0; n < valid; ++n) {
        const float* filter = filters + (panel * width + n) * 9 * channels;
        if (tile == 2) pack_filter<1>(filter, channels, c, width, to + n, position);
        if (tile == 4) pack_filter<2>(filter, channels, c, width, to + n, position);
        if (tile == 6) pack_filter<3>(filter, channels, c, width, to + n, position);
      }
    }
    for (int64_t i = 0; i < positions; ++i)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t n = valid; n < width; ++n) packed[i * position + (panel * channels + c) * width + n] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(pack_filters);

}  // namespace

void pack_winograd(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  const int64_t tile = call.attrs<ConvAttrs>().winograd;
  WinogradPlan p;
  if (!plan_winograd(g, tile, 1, 1, &p)) return;
  const int64_t width = panel_width(), panels = divide_up(g.out_channels, width);
  const auto pack = HWY_DYNAMIC_POINTER(pack_filters);
  parallel_for(threads, panels, 1, [&](int64_t begin, int64_t end) {
    pack(tile, call.in(1).as<const float>(), g.out_channels, g.in_channels, width,
         reinterpret_cast<float*>(packed), p.filter_floats, begin, end);
  });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE

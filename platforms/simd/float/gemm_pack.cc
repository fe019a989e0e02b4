// Packing of the second matrix of a float32 product into panels (gemm.h).
#include "platforms/simd/float/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/gemm_pack.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void pack_panels(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                 int64_t total_depth, float* packed, int64_t first_panel, int64_t end_panel) {
  const hn::FixedTag<float, 4> q;
  const auto width = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<float>()));
  for (int64_t p = first_panel; p < end_panel; ++p) {
    float* to = packed + p * width * total_depth;
    const int64_t c0 = p * width, valid = columns - c0 < width ? columns - c0 : width;
    if (column_step == 1) {
      for (int64_t k = 0; k < depth; ++k) {
        const float* from = b + k * depth_step + c0;
        int64_t n = 0;
        for (; n + 4 <= valid; n += 4) hn::StoreU(hn::LoadU(q, from + n), q, to + k * width + n);
        for (; n < valid; ++n) to[k * width + n] = from[n];
        for (; n < width; ++n) to[k * width + n] = 0;
      }
      continue;
    }
    int64_t n = 0;
    for (; n + 4 <= valid; n += 4) {
      const float* from = b + (c0 + n) * column_step;
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) {
        const auto r0 = hn::LoadU(q, from + k), r1 = hn::LoadU(q, from + column_step + k);
        const auto r2 = hn::LoadU(q, from + 2 * column_step + k),
                   r3 = hn::LoadU(q, from + 3 * column_step + k);
        const auto e = hn::InterleaveLower(q, r0, r2), f = hn::InterleaveLower(q, r1, r3);
        const auto g = hn::InterleaveUpper(q, r0, r2), h = hn::InterleaveUpper(q, r1, r3);
        hn::StoreU(hn::InterleaveLower(q, e, f), q, to + k * width + n);
        hn::StoreU(hn::InterleaveUpper(q, e, f), q, to + (k + 1) * width + n);
        hn::StoreU(hn::InterleaveLower(q, g, h), q, to + (k + 2) * width + n);
        hn::StoreU(hn::InterleaveUpper(q, g, h), q, to + (k + 3) * width + n);
      }
      for (; k < depth; ++k)
        for (int64_t i = 0; i < 4; ++i) to[k * width + n + i] = from[i * column_step + k];
    }
    for (; n < width; ++n)
      for (int64_t k = 0; k < depth; ++k)
        to[k * width + n] = n < valid ? b[(c0 + n) * column_step + k] : 0.0f;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(pack_panels);

void pack_panels(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                 int64_t total_depth, float* packed, int64_t first_panel, int64_t end_panel) {
  HWY_DYNAMIC_DISPATCH(pack_panels)
  (b, depth_step, column_step, columns, depth, total_depth, packed, first_panel, end_panel);
}

void pack_parallel(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                   float* packed, ThreadPool* threads) {
  const int64_t panels = divide_up(columns, panel_width());
  parallel_for(threads, panels, std::max<int64_t>(16384 / std::max<int64_t>(depth * kMaxPanel, 1), 1),
               [&](int64_t begin, int64_t end) {
                 pack_panels(b, depth_step, column_step, columns, depth, depth, packed, begin, end);
               });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE

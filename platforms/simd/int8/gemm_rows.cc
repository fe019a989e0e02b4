// The rows of integer products (gemm.h): a box of the input, and the sums of its rows.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/int8/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/gemm_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/multiply-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

void load_q_box(const Geometry& g, const QBox& box, const int8_t* x, int32_t x_zero, std::byte* buffer) {
  auto* to = reinterpret_cast<RowElement*>(buffer);
  const int64_t c = g.in_channels, reach = (g.kernel[1] - 1) * g.dilation[1];
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
    const int64_t i0 = box.begin[0] * g.stride[0] - g.pad[0] + t0 * g.dilation[0];
    for (int64_t l = 0; l < box.lines; ++l, to += box.line * c) {
      if (l % g.stride[1] > reach) continue;  // between the windows
      const int64_t i1 = box.begin[1] * g.stride[1] - g.pad[1] + l;
      convert_line(g, input_line(g, box, x, i0, i1), box.begin[2] * g.stride[2] - g.pad[2], box.line, x_zero,
                   to);
    }
  }
  fill(kQDepth - 1, RowElement{0}, to);  // the last run is read up to a multiple of kQDepth
}

void sum_q_rows(const QRows& rows, const QRuns& runs, int32_t x_zero, int32_t* sums) {
  const auto offset = static_cast<uint32_t>(runs.depth()) *
                      static_cast<uint32_t>(is_centred<RowElement>() ? 0 : x_zero + shift_of<RowElement>());
  for (int64_t r = 0; r < rows.count; ++r) {
    uint32_t sum = 0;
    for (int64_t t = 0; t < runs.count; ++t) {
      const RowElement* p = reinterpret_cast<const RowElement*>(rows.buffer) + rows.rows[r] + rows.runs[t];
      for (int64_t k = 0; k < runs.length; ++k) sum += static_cast<uint32_t>(static_cast<int32_t>(p[k]));
    }
    sums[r] = static_cast<int32_t>(sum - offset);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(load_q_box);
HWY_EXPORT(sum_q_rows);

void load_q_box(const Geometry& g, const QBox& box, const int8_t* x, int32_t x_zero, std::byte* buffer) {
  HWY_DYNAMIC_DISPATCH(load_q_box)(g, box, x, x_zero, buffer);
}

void sum_q_rows(const QRows& rows, const QRuns& runs, int32_t x_zero, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(sum_q_rows)(rows, runs, x_zero, sums);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE

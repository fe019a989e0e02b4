// Memory of several rows of weights, read before it is needed.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_READ_AHEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_READ_AHEAD_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_READ_AHEAD_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_READ_AHEAD_INL_H_
#endif

#include <algorithm>

#include "platforms/simd/isa/math-inl.h"
#include "platforms/simd/low_bit/low_bit.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Reads memory into the second cache, line after line in the order of the addresses, before several rows at a
// time are read in another order: processors fetch neighbouring lines faster than lines of several rows.
template <int kBits>
class ReadAhead {
 public:
  // Reads for `rows` rows at a time, each in `steps` groups.
  HWY_INLINE ReadAhead(const LowBit& g, int rows, int64_t steps)
      : scale_bytes_(static_cast<int64_t>(byte_width(g.scale_type)) * g.blocks),
        scale_step_(divide_up(scale_bytes_, std::max<int64_t>(steps, 1))),
        // The memory of the last of the rows begins behind the others.
        far_((rows - 1) * g.row_bytes() + kMargin),
        scale_far_(far_ * scale_bytes_ / std::max<int64_t>(g.row_bytes(), 1)) {}
  HWY_INLINE void start(const LowBit& g, int64_t row) {
    weights_ = g.weights + row * g.row_bytes() + far_;
    scales_ = reinterpret_cast<const uint8_t*>(g.scales) + row * scale_bytes_ + scale_far_;
  }
  // Reads for a vector of words of each of kRows rows.
  template <int kRows>
  HWY_INLINE void words() {
    HWY_UNROLL(8)
    for (int64_t at = 0; at < kRows * kStep; at += kLine) fetch(weights_ + at);
    weights_ += kRows * kStep;
  }
  // Reads for the scales of a group of `rows` rows.
  HWY_INLINE void scales(int rows) {
    fetch(scales_);
    scales_ += rows * scale_step_;
  }

 private:
  static constexpr int64_t kMargin = 4096, kLine = 64;
  // The bytes of memory that a vector of words of a row covers.
  static constexpr int64_t kStep =
      plane_bytes(kBits, 32 / bit_planes(kBits).bits * int64_t{hn::MaxLanes(I())});
  static HWY_INLINE void fetch(const uint8_t* at) { __builtin_prefetch(at, 0, 2); }

  int64_t scale_bytes_, scale_step_, far_, scale_far_;
  const uint8_t *weights_ = nullptr, *scales_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

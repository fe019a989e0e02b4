// The rounding error of a convolution by Winograd's algorithm, measured on its own weights.
#pragma once

#include <cstdint>
#include <span>

namespace sinter::convert {

// Errors of float32 sums against float64: by Winograd's algorithm over those of direct sums in the order of
// the weights.
struct WinogradError {
  double rms = 0;      // root mean square over the outputs
  double maximum = 0;  // the largest error of each
  // The worst of: all outputs as they are, and each in units of its filter's norm.
};

// `weights`: [outputs, 3, 3, channels]. Inputs are random numbers in (-1, 1) of a fixed seed. Every operation
// is a float32 or float64 one that is rounded by itself, so that every machine gets the same result. NaN
// where sums are not finite.
WinogradError winograd_error(std::span<const float> weights, int64_t outputs, int64_t channels, int64_t tile);

}  // namespace sinter::convert

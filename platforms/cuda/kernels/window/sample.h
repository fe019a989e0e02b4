// Arguments of kernels/window/sample.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"
#include "platforms/cuda/grid/fault.h"

namespace sinter::cuda {

enum class GridSampleKind : int32_t { kLinear, kNearest, kCubic };
enum class GridPadding : int32_t { kZeros, kBorder, kReflection };

// Samples x [images, in..., channels] at the coordinates of a grid [images, out..., axes]; missing axes, the
// first, have length 1.
struct GridSampleArguments {
  const std::byte* x = nullptr;
  const std::byte* grid = nullptr;
  std::byte* y = nullptr;
  int32_t axes = 2;
  int32_t in[3] = {1, 1, 1};
  Divider positions;  // of the grid of an image
  Divider pieces;     // of a pixel, of `group` channels each
  uint32_t size = 0;  // pieces of all pixels
  int32_t group = 1;  // 1 or kSampleGroup
  GridSampleKind kind = GridSampleKind::kLinear;
  GridPadding padding = GridPadding::kZeros;
  int32_t align_corners = 0;
  int32_t x_double = 0, grid_double = 0;  // float64, else float32
};
inline constexpr int kSampleGroup = 4;

// Pools x [images, height, width, channels] in regions of 4 numbers each to bins.
struct RoiAlignArguments {
  const std::byte* x = nullptr;
  const std::byte* rois = nullptr;
  const std::byte* images = nullptr;  // an index for each region
  std::byte* y = nullptr;
  int32_t height = 1, width = 1, image_count = 1, channels = 1;
  Divider bins_down, bins_across, pieces;
  uint32_t size = 0;  // pieces of all bins
  int32_t group = 1;  // 1 or kSampleGroup
  int32_t average = 1, half_pixel = 1,
          points = 0;  // points along an axis of a bin; 0: by its length
  double scale = 1;
  int32_t index_width = 8, x_double = 0, rois_double = 0;
  FaultPlace fault;
};
// The most points of a bin along an axis; a region that needs more is not a region of an image.
inline constexpr int kMostSamplePoints = 1 << 12;

}  // namespace sinter::cuda

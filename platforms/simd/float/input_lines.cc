#include "platforms/simd/float/input_lines.h"

#include <cstring>
#include <limits>

#include "hwy/detect_compiler_arch.h"
#include "platforms/simd/move/copy_rows.h"

namespace sinter::simd {
namespace {

constexpr int64_t kMostPixels = 192;     // of a tile
constexpr int64_t kCachedFloats = 6144;  // of lines that leave room in the first cache

// Returns input positions, which set_size has found not to overflow.
int64_t extent(int64_t outputs, const Geometry& g, int axis) {
  return (outputs - 1) * g.stride[axis] + (g.kernel[axis] - 1) * g.dilation[axis] + 1;
}

// Returns false on overflow; `floats` are all of the input's.
bool set_size(const Geometry& g, int64_t lines, int64_t columns, LineTiles* t, int64_t* floats) {
  t->lines = lines, t->columns = columns;
  t->down = divide_up(g.out[1], lines), t->across = divide_up(g.out[2], columns);
  return reach(g, 2, columns, &t->line_floats) &&
         checked_mul(t->line_floats, g.in_channels / g.group, &t->line_floats) &&
         reach(g, 1, lines, &t->input_lines) && checked_mul(t->line_floats, t->input_lines, floats);
}

}  // namespace

bool choose_line_tiles(const Geometry& g, int64_t floats, int64_t rows, int64_t threads, LineTiles* tiles) {
  const bool plane = g.in[0] == 1 && g.out[0] == 1 && g.kernel[0] == 1 && g.pad[0] == 0;
  if (!HWY_ARCH_X86 || !plane || g.kernel[1] * g.kernel[2] == 1 || g.kernel[1] < g.stride[1] ||
      g.kernel[2] < g.stride[2])
    return false;
  floats = std::min<int64_t>(floats, std::numeric_limits<int32_t>::max());  // places are of 32 bits
  const auto fits = [&](int64_t lines, int64_t columns) {
    int64_t needed = 0;
    return set_size(g, lines, columns, tiles, &needed) && tiles->pixels() <= kMostPixels &&
           needed <= floats && needed + list_floats(g, *tiles) <= floats &&
           (needed <= kCachedFloats || tiles->pixels() <= rows);
  };
  int64_t lines = 1, columns = g.out[2];
  for (int64_t across = 1; !fits(1, columns); columns = divide_up(g.out[2], ++across))
    if (columns < rows / 4) return false;
  if (columns == g.out[2]) {
    while (lines < g.out[1] && g.batch * divide_up(g.out[1], lines + 1) >= threads &&
           fits(lines + 1, columns))
      ++lines;
    lines = even_piece(g.out[1], lines);
  }
  return fits(lines, columns) && (g.batch == 1 || tiles->pixels() >= rows / 4);
}

void list_places(const Geometry& g, const LineTiles& t, int32_t* pixels, int32_t* depths) {
  const int64_t channels = g.in_channels / g.group;
  for (int64_t i = 0; i < t.lines; ++i)
    for (int64_t k = 0; k < t.columns; ++k)
      *pixels++ = static_cast<int32_t>(i * g.stride[1] * t.line_floats + k * g.stride[2] * channels);
  for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1)
    for (int64_t t2 = 0; t2 < g.kernel[2]; ++t2)
      for (int64_t c = 0; c < channels; ++c)
        *depths++ =
            static_cast<int32_t>(t1 * g.dilation[1] * t.line_floats + t2 * g.dilation[2] * channels + c);
}

LineTile line_tile(const Geometry& g, const LineTiles& t, int64_t i) {
  LineTile tile;
  const int64_t across = i % t.across, down = i / t.across % t.down;
  tile.image = i / t.across / t.down;
  tile.line = down * t.lines, tile.column = g.out[2] * across / t.across;
  tile.lines = std::min(t.lines, g.out[1] - tile.line);
  tile.columns = g.out[2] * (across + 1) / t.across - tile.column;
  return tile;
}

void copy_lines(const Geometry& g, const LineTiles& t, const LineTile& tile, const float* x, int64_t group,
                float* to) {
  const int64_t channels = g.in_channels / g.group, step = g.in_pixel(), pixels = extent(tile.columns, g, 2);
  const int64_t first = tile.column * g.stride[2] - g.pad[2], line = tile.line * g.stride[1] - g.pad[1];
  const int64_t left = std::clamp<int64_t>(-first, 0, pixels),
                right = std::clamp(g.in[2] - first, left, pixels);
  const float* image = x + tile.image * g.in_pixels() * step + group * channels;
  for (int64_t i = 0, lines = extent(tile.lines, g, 1); i < lines; ++i, to += t.line_floats) {
    const bool within = line + i >= 0 && line + i < g.in[1];
    const int64_t begin = within ? left : pixels, end = within ? right : pixels;
    std::fill_n(to, begin * channels, 0.0f);
    if (begin < end) {
      const auto* from =
          reinterpret_cast<const std::byte*>(image + ((line + i) * g.in[2] + first + begin) * step);
      auto* at = reinterpret_cast<std::byte*>(to + begin * channels);
      const auto bytes = static_cast<size_t>(channels) * sizeof(float),
                 count = static_cast<size_t>(end - begin);
      if (step == channels)
        std::memcpy(at, from, bytes * count);
      else
        copy_rows({from, at, step * static_cast<int64_t>(sizeof(float)), static_cast<int64_t>(bytes), bytes,
                   count});
    }
    std::fill_n(to + end * channels, (pixels - end) * channels, 0.0f);
  }
}

}  // namespace sinter::simd

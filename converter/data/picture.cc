#include "converter/data/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

constexpr uint8_t kPngMagic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr uint8_t kJpegMagic[] = {0xff, 0xd8, 0xff};

template <size_t N>
bool begins_with(std::span<const std::byte> file, const uint8_t (&magic)[N]) {
  return file.size() >= N && std::memcmp(file.data(), magic, N) == 0;
}

// The source pixels along one axis whose mean is a target pixel.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;  // in units of 2^-kWeightBits
};
constexpr int kWeightBits = 22;

std::vector<Taps> taps_of(int64_t from, int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(step, 1.0);  // the filter's extent to either side
  std::vector<Taps> taps(static_cast<size_t>(to));
  std::vector<double> shares;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + reach + 0.5), from);
    shares.clear();
    double sum = 0;
    for (int64_t k = first; k < end; ++k) {
      const double distance = std::fabs((static_cast<double>(k) - centre + 0.5) * (1.0 / reach));
      shares.push_back(distance < 1 ? 1 - distance : 0);
      sum += shares.back();
    }
    Taps& t = taps[static_cast<size_t>(i)];
    t.first = first;
    for (const double share : shares)
      t.weights.push_back(static_cast<int32_t>(share / sum * (1 << kWeightBits) + 0.5));
  }
  return taps;
}

uint8_t rounded_sum(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kWeightBits, 0, 255));
}
constexpr int64_t kHalf = int64_t{1} << (kWeightBits - 1);

Picture resized_rows(const Picture& in, int64_t width) {
  Picture out{width, in.height, in.channels, {}};
  const auto c = static_cast<size_t>(in.channels);
  out.pixels.resize(static_cast<size_t>(width * in.height) * c);
  const std::vector<Taps> taps = taps_of(in.width, width);
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < in.height; ++y) {
    const uint8_t* row = in.pixels.data() + static_cast<size_t>(y * in.width) * c;
    for (const Taps& t : taps)
      for (size_t k = 0; k < c; ++k) {
        const uint8_t* from = row + static_cast<size_t>(t.first) * c + k;
        int64_t sum = kHalf;
        for (size_t i = 0; i < t.weights.size(); ++i) sum += int64_t{t.weights[i]} * from[i * c];
        *to++ = rounded_sum(sum);
      }
  }
  return out;
}

Picture resized_columns(const Picture& in, int64_t height) {
  Picture out{in.width, height, in.channels, {}};
  const auto row = static_cast<size_t>(in.width * in.channels);
  out.pixels.resize(static_cast<size_t>(height) * row);
  const std::vector<Taps> taps = taps_of(in.height, height);
  uint8_t* to = out.pixels.data();
  for (const Taps& t : taps)
    for (size_t x = 0; x < row; ++x) {
      const uint8_t* from = in.pixels.data() + static_cast<size_t>(t.first) * row + x;
      int64_t sum = kHalf;
      for (size_t i = 0; i < t.weights.size(); ++i) sum += int64_t{t.weights[i]} * from[i * row];
      *to++ = rounded_sum(sum);
    }
  return out;
}

}  // namespace

bool is_picture(std::span<const std::byte> file) {
  return begins_with(file, kPngMagic) || begins_with(file, kJpegMagic);
}

Picture decode_picture(std::span<const std::byte> file, const std::string& what) {
  if (begins_with(file, kPngMagic)) return decode_png(file, what);
  if (begins_with(file, kJpegMagic)) return decode_jpeg(file, what);
  throw DataError(what + ": this is neither a PNG nor a JPEG file; save it as one of these");
}

Picture with_channels(Picture picture, int64_t channels) {
  if (picture.channels == channels) return picture;
  Picture out{picture.width, picture.height, channels, {}};
  const auto n = static_cast<size_t>(picture.width * picture.height);
  out.pixels.resize(n * static_cast<size_t>(channels));
  const uint8_t* from = picture.pixels.data();
  if (channels == 3) {
    for (size_t i = 0; i < n; ++i) std::memset(&out.pixels[3 * i], from[i], 3);
  } else {
    // The factors are 0.299, 0.587 and 0.114 in units of 2^-16.
    for (size_t i = 0; i < n; ++i, from += 3)
      out.pixels[i] =
          static_cast<uint8_t>((from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16);
  }
  return out;
}

Picture resized(const Picture& picture, int64_t width, int64_t height) {
  Picture rows = picture.width == width ? picture : resized_rows(picture, width);
  return rows.height == height ? rows : resized_columns(rows, height);
}

void check_picture_size(int64_t width, int64_t height, const std::string& what) {
  if (width < 1 || height < 1 || width > kMostPixels / height)
    throw DataError(fmt::format("{}: a picture of {} x {} pixels is not read; give 1 to {} pixels", what,
                                width, height, kMostPixels));
}

}  // namespace sinter::convert

// Pictures: PNG and JPEG files as pixels of 8 bits.
//
// Alpha is dropped, palettes become RGB, and 16 bits a channel are rounded to 8. Gamma, colour profiles and
// EXIF (the orientation too) are not applied. CMYK files are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinter::convert {

struct Picture {
  int64_t width = 0, height = 0;
  int64_t channels = 0;         // 1: luminance, 3: RGB
  std::vector<uint8_t> pixels;  // rows from the top, the channels of a pixel side by side
};

// The most pixels of a file; a file that states more is refused before memory is taken for them.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;

// Whether the bytes begin as a PNG or JPEG file does.
bool is_picture(std::span<const std::byte> file);
// Returns the picture in a file, whose format follows from its first bytes and not from its name. `what`
// names the file in errors. Throws DataError.
Picture decode_picture(std::span<const std::byte> file, const std::string& what);

// Returns the picture with 1 channel (luminance by ITU-R BT.601, rounded) or 3 (luminance three times).
Picture with_channels(Picture picture, int64_t channels);

// Returns the picture in another size. The filter is bilinear, with a wider support where the picture gets
// smaller (antialiased): every pixel is the weighted mean of the source pixels within one target pixel's
// width. Weights have 22 bits behind the point; rows are rounded to 8 bits before columns, as in Pillow 12.
Picture resized(const Picture& picture, int64_t width, int64_t height);

// Return the picture in a PNG or JPEG file. Throw DataError naming `what`.
Picture decode_png(std::span<const std::byte> file, const std::string& what);
Picture decode_jpeg(std::span<const std::byte> file, const std::string& what);
// Throws DataError where a picture has no pixels or more than kMostPixels.
void check_picture_size(int64_t width, int64_t height, const std::string& what);

}  // namespace sinter::convert

// PNG files, by libpng.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "converter/data/picture.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

// libpng leaves a failing call by longjmp, so that no function between has anything to destroy.
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> file) : rest_(file) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Both return false where the file is damaged; fault() is the reason.
  bool read_header() {
    if (setjmp(back_) != 0) return false;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    if (png_ == nullptr) return false;
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    png_set_read_fn(png_, this, take);
    png_set_user_limits(png_, kLongestSide, kLongestSide);
    png_read_info(png_, info_);
    width = png_get_image_width(png_, info_), height = png_get_image_height(png_, info_);
    return true;
  }
  // The rows must have `row_bytes` bytes.
  bool prepare() {
    if (setjmp(back_) != 0) return false;
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) {
      // Every pixel becomes a byte; libpng's own colours would be black for indices beyond the palette.
      if (png_get_PLTE(png_, info_, &palette_, &colours_) == 0) png_error(png_, "it has no palette");
      png_set_packing(png_);
    } else {
      png_set_expand(png_);  // fewer bits to 8, transparency to alpha
      png_set_scale_16(png_);
      png_set_strip_alpha(png_);
    }
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    channels = png_get_channels(png_, info_), row_bytes = png_get_rowbytes(png_, info_);
    return true;
  }
  bool read_rows(png_bytepp rows) {
    if (setjmp(back_) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }
  // Whether pixels are indices into a palette, which expand() has to replace.
  bool has_palette() const { return palette_ != nullptr; }
  // Writes a row's colours over its indices, the last third. Returns false if one is not in the palette.
  bool expand(uint8_t* row) {
    for (int64_t x = 0; x < width; ++x) {
      const int index = row[2 * width + x];
      if (index >= colours_) {
        std::strcpy(fault_, "a pixel's colour is not in its palette");
        return false;
      }
      const png_color& colour = palette_[index];
      row[3 * x] = colour.red, row[3 * x + 1] = colour.green, row[3 * x + 2] = colour.blue;
    }
    return true;
  }
  const char* fault() const { return fault_; }

  int64_t width = 0, height = 0, channels = 0;
  size_t row_bytes = 0;

 private:
  static constexpr png_uint_32 kLongestSide = 1 << 24;

  [[noreturn]] static void fail(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->fault_, text, sizeof self->fault_ - 1);
    std::longjmp(self->back_, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void take(png_structp png, png_bytep to, size_t bytes) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (bytes > self->rest_.size()) png_error(png, "it is truncated");
    std::memcpy(to, self->rest_.data(), bytes);
    self->rest_ = self->rest_.subspan(bytes);
  }

  std::span<const std::byte> rest_;
  std::jmp_buf back_ = {};
  char fault_[200] = "out of memory";
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  png_colorp palette_ = nullptr;
  int colours_ = 0;
};

}  // namespace

Picture decode_png(std::span<const std::byte> file, const std::string& what) {
  PngReader reader(file);
  const auto check = [&](bool done) {
    if (!done)
      throw DataError(fmt::format("{}: the PNG file is damaged ({}); write it again", what, reader.fault()));
  };
  check(reader.read_header());
  check_picture_size(reader.width, reader.height, what);
  check(reader.prepare());
  check((reader.channels == 1 || (reader.channels == 3 && !reader.has_palette())) &&
        reader.row_bytes == static_cast<size_t>(reader.width * reader.channels));
  Picture picture{reader.width, reader.height, reader.has_palette() ? 3 : reader.channels, {}};
  const auto row_bytes = static_cast<size_t>(picture.width * picture.channels);
  picture.pixels.resize(row_bytes * static_cast<size_t>(picture.height));
  std::vector<png_bytep> rows;  // the places that libpng reads rows to: the ends of the picture's rows
  for (size_t y = 0; y < static_cast<size_t>(picture.height); ++y)
    rows.push_back(picture.pixels.data() + (y + 1) * row_bytes - reader.row_bytes);
  check(reader.read_rows(rows.data()));
  for (size_t y = 0; reader.has_palette() && y < rows.size(); ++y)
    check(reader.expand(picture.pixels.data() + y * row_bytes));
  return picture;
}

}  // namespace sinter::convert

// JPEG files, by libjpeg-turbo with its default settings (accurate integer DCT, smooth chroma upsampling).
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>  // needs <cstdio>

#include <csetjmp>
#include <cstdio>

#include "converter/data/picture.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

// libjpeg leaves a failing call by longjmp, so that no function between has anything to destroy.
class JpegReader {
 public:
  explicit JpegReader(std::span<const std::byte> file) : file_(file) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = fail;
    errors_.emit_message = judge;
    errors_.output_message = [](j_common_ptr) {};
    jpeg_.client_data = this;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Both return false where the file is damaged; fault() is the reason.
  bool read_header() {
    if (setjmp(back_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file_.data()),
                 static_cast<unsigned long>(file_.size()));
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }
  // Writes width * height * channels bytes.
  bool read_rows(uint8_t* pixels) {
    if (setjmp(back_) != 0) return false;
    jpeg_.out_color_space = jpeg_.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    progress_.progress_monitor = limit_scans;
    jpeg_.progress = &progress_;
    jpeg_start_decompress(&jpeg_);
    const size_t row_bytes = size_t{jpeg_.output_width} * static_cast<size_t>(jpeg_.output_components);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = pixels + jpeg_.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }
  int64_t width() const { return jpeg_.image_width; }
  int64_t height() const { return jpeg_.image_height; }
  J_COLOR_SPACE colours() const { return jpeg_.jpeg_color_space; }
  const char* fault() const { return fault_; }

 private:
  // The most scans: a progressive file of few bytes can request any number of passes over all pixels.
  static constexpr int kMostScans = 500;

  [[noreturn]] static void fail(j_common_ptr jpeg) {
    auto* self = static_cast<JpegReader*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, self->fault_);
    std::longjmp(self->back_, 1);
  }
  // Turns a warning about missing data into a fault, because pixels would be made up.
  static void judge(j_common_ptr jpeg, int level) {
    if (level < 0 && (jpeg->err->msg_code == JWRN_JPEG_EOF || jpeg->err->msg_code == JWRN_HIT_MARKER))
      fail(jpeg);
  }
  static void limit_scans(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
    auto* self = static_cast<JpegReader*>(jpeg->client_data);
    std::snprintf(self->fault_, sizeof self->fault_, "it has more than %d scans", kMostScans);
    std::longjmp(self->back_, 1);
  }

  std::span<const std::byte> file_;
  std::jmp_buf back_ = {};
  char fault_[JMSG_LENGTH_MAX] = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  jpeg_decompress_struct jpeg_ = {};
};

}  // namespace

Picture decode_jpeg(std::span<const std::byte> file, const std::string& what) {
  JpegReader reader(file);
  const auto check = [&](bool done) {
    if (!done)
      throw DataError(fmt::format("{}: the JPEG file is damaged ({}); write it again", what, reader.fault()));
  };
  check(reader.read_header());
  const J_COLOR_SPACE colours = reader.colours();
  if (colours != JCS_GRAYSCALE && colours != JCS_YCbCr && colours != JCS_RGB)
    throw DataError(
        fmt::format("{}: the JPEG file holds {}; convert it to RGB or grey", what,
                    colours == JCS_CMYK || colours == JCS_YCCK ? "CMYK" : "an unknown number of colours"));
  check_picture_size(reader.width(), reader.height(), what);
  Picture picture{reader.width(), reader.height(), colours == JCS_GRAYSCALE ? 1 : 3, {}};
  picture.pixels.resize(static_cast<size_t>(picture.width * picture.height * picture.channels));
  check(reader.read_rows(picture.pixels.data()));
  return picture;
}

}  // namespace sinter::convert

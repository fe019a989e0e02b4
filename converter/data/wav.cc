#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "converter/data/sound.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;
constexpr uint32_t kToTheEnd = 0xffffffff;  // the size where a writer could not go back to enter it
constexpr uint32_t kMostChannels = 1024;

uint32_t little(std::span<const std::byte> bytes, size_t at, size_t n) {
  uint32_t value = 0;
  for (size_t i = n; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

bool is_tag(std::span<const std::byte> bytes, size_t at, const char* tag) {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, tag, 4) == 0;
}

struct WavFormat {
  uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

WavFormat read_format(std::span<const std::byte> chunk, const std::string& what) {
  if (chunk.size() < 16) throw DataError(what + ": the WAV file is damaged (its format); write it again");
  WavFormat f{little(chunk, 0, 2), little(chunk, 2, 2), little(chunk, 4, 4), little(chunk, 14, 2)};
  if (f.kind == kExtensible && chunk.size() >= 40) f.kind = little(chunk, 24, 2);
  const bool pcm = f.kind == kPcm && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  const bool real = f.kind == kFloat && (f.bits == 32 || f.bits == 64);
  if (!pcm && !real)
    throw DataError(fmt::format("{}: WAV format {} with {} bits is not read; save it as PCM or float", what,
                                f.kind, f.bits));
  if (f.channels == 0 || f.channels > kMostChannels || f.rate == 0 ||
      little(chunk, 12, 2) != f.channels * (f.bits / 8))
    throw DataError(what + ": the WAV file is damaged (its format); write it again");
  return f;
}

float number(std::span<const std::byte> data, size_t at, const WavFormat& f) {
  const size_t bytes = f.bits / 8;
  if (f.kind == kFloat) {
    if (bytes == 4) {
      float x;
      std::memcpy(&x, data.data() + at, sizeof x);
      return x;
    }
    double x;
    std::memcpy(&x, data.data() + at, sizeof x);
    return static_cast<float>(x);
  }
  if (bytes == 1) return (static_cast<float>(little(data, at, 1)) - 128.0f) / 128.0f;
  // The bits are shifted to the top, where the sign is.
  const auto top = static_cast<int32_t>(little(data, at, bytes) << (32 - f.bits));
  return static_cast<float>(static_cast<double>(top) * 0x1p-31);
}

}  // namespace

Sound decode_wav(std::span<const std::byte> file, const std::string& what) {
  if (!is_tag(file, 0, "RIFF") || !is_tag(file, 8, "WAVE"))
    throw DataError(what + ": this is not a WAV file (RIFF); save it as one");
  std::optional<WavFormat> format;
  size_t at = 12;
  while (at + 8 <= file.size()) {
    const uint32_t stated = little(file, at + 4, 4);
    const bool data = is_tag(file, at, "data"), is_format = is_tag(file, at, "fmt ");
    at += 8;
    const size_t rest = file.size() - at;
    const size_t bytes = data && stated == kToTheEnd ? rest : stated;
    if (bytes > rest) {
      if (!data && !is_format) break;
      throw DataError(
          fmt::format("{}: the WAV file is truncated: {} bytes of {}; write it again", what, rest, bytes));
    }
    const auto chunk = file.subspan(at, bytes);
    if (is_format) format = read_format(chunk, what);
    if (data) {
      if (!format) throw DataError(what + ": the WAV file is damaged (no format); write it again");
      const size_t frame = format->channels * (format->bits / 8);
      if (bytes % frame != 0 && stated != kToTheEnd)
        throw DataError(what + ": the WAV file is damaged (it ends within a frame); write it again");
      Sound sound{format->rate, format->channels, static_cast<int64_t>(bytes / frame), {}};
      sound.samples.resize(static_cast<size_t>(sound.frames * sound.channels));
      for (size_t i = 0; i < sound.samples.size(); ++i)
        sound.samples[i] = number(chunk, i * (format->bits / 8), *format);
      return sound;
    }
    at += bytes + bytes % 2;
    if (at < bytes) break;
  }
  throw DataError(what + ": the WAV file holds no sound; write it again");
}

}  // namespace sinter::convert

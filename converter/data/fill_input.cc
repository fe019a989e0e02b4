// Inputs that are filled with pictures and sounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "converter/data/preprocessing.h"
#include "converter/diagnostics/errors.h"
#include "converter/ir/builder.h"

namespace sinter::convert {
namespace {

using Resize = Preprocessing::Resize;

int64_t half_to_even(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

// Returns a picture of this size with the pixels of `in` from (left, top) on, and `fill` outside of these.
Picture part_of(const Picture& in, int64_t left, int64_t top, int64_t width, int64_t height, int fill = 0) {
  Picture out{width, height, in.channels, {}};
  out.pixels.assign(static_cast<size_t>(width * height * in.channels), static_cast<uint8_t>(fill));
  const int64_t first = std::max<int64_t>(left, 0), end = std::min(left + width, in.width);
  for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + height, in.height); ++y)
    std::memcpy(out.pixels.data() + static_cast<size_t>(((y - top) * width + first - left) * in.channels),
                in.pixels.data() + static_cast<size_t>((y * in.width + first) * in.channels),
                static_cast<size_t>((end - first) * in.channels));
  return out;
}

// Returns the picture in this size. Throws DataError where it would have too many pixels.
Picture resized_within(const Picture& in, int64_t width, int64_t height, const std::string& what) {
  check_picture_size(width, height, what);
  return resized(in, width, height);
}

Picture cropped(const Picture& in, const PictureAxes& to, int64_t side, const std::string& what) {
  int64_t width = to.width, height = to.height;
  if (side > 0) {
    if (side < std::max(to.width, to.height))
      throw DataError(fmt::format("{}: --resize crop={} is smaller than the input ({} x {}); give {} or more",
                                  what, side, to.width, to.height, std::max(to.width, to.height)));
    // The longer side is rounded down.
    const bool wide = in.width > in.height;
    width = wide ? side * in.width / in.height : side;
    height = wide ? side : side * in.height / in.width;
  } else if (in.width * to.height > to.width * in.height) {  // wider than the input
    width = std::max(to.width, to.height * in.width / in.height);
  } else {
    height = std::max(to.height, to.width * in.height / in.width);
  }
  const Picture all = resized_within(in, width, height, what);
  return part_of(all, half_to_even(static_cast<double>(width - to.width) / 2),
                 half_to_even(static_cast<double>(height - to.height) / 2), to.width, to.height);
}

Picture letterboxed(const Picture& in, const PictureAxes& to, int fill, const std::string& what) {
  const double ratio = std::min(static_cast<double>(to.width) / static_cast<double>(in.width),
                                static_cast<double>(to.height) / static_cast<double>(in.height));
  const auto side = [&](int64_t from, int64_t most) {
    return std::clamp<int64_t>(half_to_even(static_cast<double>(from) * ratio), 1, most);
  };
  const Picture all = resized_within(in, side(in.width, to.width), side(in.height, to.height), what);
  return part_of(all, -((to.width - all.width) / 2), -((to.height - all.height) / 2), to.width, to.height,
                 fill);
}

Picture fitted(const Picture& in, const PictureAxes& to, const std::string& what, const Preprocessing& how) {
  if (to.width < 1 || to.height < 1) throw DataError(what + ": the input has no pixels");
  switch (how.resize) {
    case Resize::kExact:
      return resized_within(in, to.width, to.height, what);
    case Resize::kCrop:
      return cropped(in, to, how.side, what);
    case Resize::kLetterbox:
      return letterboxed(in, to, how.fill, what);
    case Resize::kNone:
      break;
  }
  if (in.width != to.width || in.height != to.height)
    throw DataError(
        fmt::format("{}: the picture has {} x {} pixels but the input {} x {} (width x height); add --resize "
                    "exact, crop or letterbox",
                    what, in.width, in.height, to.width, to.height));
  return in;
}

// Returns the float32 numbers in the input's type.
ConstantPtr as_type(std::vector<float> numbers, const std::string& what, const DataInput& input) {
  if (!is_float(input.dtype)) {
    const bool is_bits =
        input.dtype == DType::kBool || bit_width(input.dtype) < 8 || bit_width(input.dtype) > 64;
    if (is_bits || !is_integer(input.dtype))
      throw DataError(fmt::format("input '{}' is {}, which neither pictures nor sounds fill; give arrays",
                                  input.name, dtype_name(input.dtype)));
    const bool is_signed = input.dtype == DType::kInt8 || input.dtype == DType::kInt16 ||
                           input.dtype == DType::kInt32 || input.dtype == DType::kInt64;
    const int bits = static_cast<int>(bit_width(input.dtype)) - (is_signed ? 1 : 0);
    const double high = std::ldexp(1.0, bits) - 1, low = is_signed ? -std::ldexp(1.0, bits) : 0;
    for (float& x : numbers) {
      const float rounded = std::nearbyint(x);
      if (!(rounded >= low && rounded <= high))
        throw DataError(
            fmt::format("{}: the number {:g} is outside the range of input '{}' ({}); give other --mean "
                        "and --scale",
                        what, x, input.name, dtype_name(input.dtype)));
      x = rounded;
    }
  }
  ConstantPtr floats = Constant::of<float>(DType::kFloat32, input.dims, numbers);
  if (input.dtype == DType::kFloat32) return floats;
  std::vector<ConstantPtr> cast;
  if (!evaluate(CastAttrs{static_cast<int64_t>(input.dtype), 1}, {floats}, 1, &cast, false).ok())
    throw DataError(fmt::format("{}: its numbers cannot be converted to {}", what, dtype_name(input.dtype)));
  return cast[0];
}

std::string frames_text(const Sound& sound) {
  return fmt::format("{} samples of {} channel{}", sound.frames, sound.channels,
                     sound.channels == 1 ? "" : "s");
}

}  // namespace

ConstantPtr picture_input(Picture picture, const std::string& what, const DataInput& input,
                          const Preprocessing& how) {
  const PictureAxes axes = picture_axes(input, how);
  if (is_float(input.dtype) && how.mean.empty() && how.scale.empty())
    throw DataError(fmt::format(
        "{}: input '{}' is {}; give --mean and --scale as the model was trained with them: the number "
        "is (pixel - mean) * scale (--scale 1: 0 to 255; --scale 1/255: 0 to 1)",
        what, input.name, dtype_name(input.dtype)));
  const std::vector<float> mean = mean_of_channels(how, axes.channels);
  const std::vector<float> scale = scale_of_channels(how, axes.channels);
  const Picture fit = fitted(with_channels(std::move(picture), axes.channels), axes, what, how);
  const auto pixels = static_cast<size_t>(axes.width * axes.height),
             channels = static_cast<size_t>(axes.channels);
  std::vector<float> numbers(pixels * channels);
  for (size_t c = 0; c < channels; ++c) {
    const size_t from = how.bgr ? channels - 1 - c : c;
    for (size_t i = 0; i < pixels; ++i)
      numbers[axes.channels_first ? c * pixels + i : i * channels + c] =
          (static_cast<float>(fit.pixels[i * channels + from]) - mean[c]) * scale[c];
  }
  return as_type(std::move(numbers), what, input);
}

ConstantPtr sound_input(const Sound& sound, const std::string& what, const DataInput& input,
                        const Preprocessing& how) {
  const std::optional<SoundAxes> axes = sound_axes(input.dims);
  const auto refuse = [&](const std::string& remedy) {
    return DataError(fmt::format("{}: the sound has {} but input '{}' is {}; {}", what, frames_text(sound),
                                 input.name, to_string(input.dtype, input.dims), remedy));
  };
  if (how.resize == Resize::kExact)
    throw UsageError("--resize exact is for pictures; sounds take crop and letterbox");
  if (!axes || (axes->channels > 1 && axes->channels != sound.channels))
    throw refuse("compute the input from the sound beforehand, and give arrays");
  const auto [frames, channels, first] = *axes;
  int64_t start = 0;
  if (sound.frames > frames) {
    if (how.resize != Resize::kCrop) throw refuse("--resize crop takes the middle of longer sounds");
    start = (sound.frames - frames) / 2;
  } else if (sound.frames < frames && how.resize != Resize::kLetterbox) {
    throw refuse("--resize letterbox adds silence to shorter sounds");
  }
  const std::vector<float> mean = mean_of_channels(how, channels), scale = scale_of_channels(how, channels);
  std::vector<float> numbers(static_cast<size_t>(frames * channels));
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      float x = 0;
      if (t + start < sound.frames) {
        const float* frame = &sound.samples[static_cast<size_t>((t + start) * sound.channels)];
        if (channels > 1) {
          x = frame[c];
        } else {
          for (int64_t k = 0; k < sound.channels; ++k) x += frame[k];
          x /= static_cast<float>(sound.channels);
        }
      }
      const auto k = static_cast<size_t>(c);
      numbers[static_cast<size_t>(first ? c * frames + t : t * channels + c)] = (x - mean[k]) * scale[k];
    }
  return as_type(std::move(numbers), what, input);
}

}  // namespace sinter::convert

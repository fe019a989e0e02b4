// The flags of preprocessing, and their meaning for an input.
#include "converter/data/preprocessing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

std::optional<double> decimal(std::string_view text) {
  double x = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(x)) return std::nullopt;
  return x;
}

// Returns the number of "127.5" or "1/255".
std::optional<double> fraction_of(std::string_view text) {
  const size_t bar = text.find('/');
  if (bar == std::string_view::npos) return decimal(text);
  const auto above = decimal(text.substr(0, bar)), below = decimal(text.substr(bar + 1));
  if (!above || !below || *below == 0) return std::nullopt;
  return *above / *below;
}

std::vector<float> number_list(const char* flag, const std::string& text) {
  std::vector<float> list;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const auto x = fraction_of(std::string_view(text).substr(at, comma - at));
    if (!x || !std::isfinite(static_cast<float>(*x)))
      throw UsageError(fmt::format(
          "{} {}: '{}' is not a number; give one, or one for each channel, such as 127.5 or 1/255", flag,
          text, text.substr(at, comma - at)));
    list.push_back(static_cast<float>(*x));
    at = comma + 1;
  }
  return list;
}

int64_t whole(const std::string& text, std::string_view number, int64_t low, int64_t high) {
  int64_t n = -1;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), n);
  if (fault != std::errc() || end != number.data() + number.size() || n < low || n > high)
    throw UsageError(fmt::format("--resize {}: '{}' is not a whole number from {} to {}; give one", text,
                                 number, low, high));
  return n;
}

std::vector<float> of_channels(const char* flag, const std::vector<float>& given, int64_t channels,
                               float absent) {
  const auto n = static_cast<size_t>(channels);
  if (given.size() <= 1) return std::vector<float>(n, given.empty() ? absent : given[0]);
  if (given.size() != n)
    throw UsageError(
        fmt::format("{} has {} numbers but the input has {} channel{}; give one number, or one for "
                    "each channel",
                    flag, given.size(), channels, channels == 1 ? "" : "s"));
  return given;
}

bool is_colours(int64_t n) { return n == 1 || n == 3; }

}  // namespace

std::string Preprocessing::given() const {
  std::string flags;
  const auto add = [&](bool is_given, const char* flag) {
    if (is_given) flags += fmt::format("{}{}", flags.empty() ? "" : ", ", flag);
  };
  add(resize != Resize::kNone, "--resize");
  add(!mean.empty(), "--mean");
  add(!scale.empty(), "--scale");
  add(layout != Layout::kByShape, "--layout");
  add(bgr, "--channel-order");
  return flags;
}

bool Preprocessing::changes_numbers() const {
  const auto any_but = [](const std::vector<float>& list, float same) {
    return std::any_of(list.begin(), list.end(), [same](float x) { return x != same; });
  };
  return !built_in && (any_but(mean, 0) || any_but(scale, 1));
}

Preprocessing Preprocessing::for_type(DType dtype) const {
  Preprocessing how = *this;
  if (built_in && dtype == DType::kUint8) how.mean.clear(), how.scale.clear(), how.bgr = false;
  return how;
}

Preprocessing parse_preprocessing(const PreprocessingText& text) {
  Preprocessing how;
  const size_t equals = text.resize.find('=');
  const std::string mode = text.resize.substr(0, equals);
  const std::string_view number =
      equals == std::string::npos ? std::string_view() : std::string_view(text.resize).substr(equals + 1);
  const bool plain = equals == std::string::npos;
  if (mode == "exact" && plain) {
    how.resize = Preprocessing::Resize::kExact;
  } else if (mode == "crop") {
    how.resize = Preprocessing::Resize::kCrop;
    if (!plain) how.side = whole(text.resize, number, 1, 65536);
  } else if (mode == "letterbox") {
    how.resize = Preprocessing::Resize::kLetterbox;
    if (!plain) how.fill = static_cast<int>(whole(text.resize, number, 0, 255));
  } else if (!text.resize.empty()) {
    throw UsageError(
        fmt::format("--resize {}: give exact, crop, crop=SIDE, letterbox or letterbox=PIXEL", text.resize));
  }
  how.mean = number_list("--mean", text.mean);
  how.scale = number_list("--scale", text.scale);
  if (std::find(how.scale.begin(), how.scale.end(), 0.0f) != how.scale.end())
    throw UsageError(
        fmt::format("--scale {}: a scale of 0 makes every pixel the same number; give another, such as 1/255",
                    text.scale));
  if (text.layout == "nhwc") how.layout = Preprocessing::Layout::kChannelsLast;
  if (text.layout == "nchw") how.layout = Preprocessing::Layout::kChannelsFirst;
  how.bgr = text.channel_order == "bgr";
  return how;
}

PictureAxes picture_axes(const DataInput& input, const Preprocessing& how) {
  const Dims& dims = input.dims;
  const auto fail = [&](const char* why) {
    return DataError(fmt::format("input '{}' ({}) {}", input.name, to_string(input.dtype, dims), why));
  };
  constexpr const char* kNoPicture =
      "does not take one picture; a picture fills [1,C,H,W] or [1,H,W,C], with C = 1 or 3: give arrays";
  Dims own = dims;
  if (own.size() == 4) {
    if (own[0] != 1) throw fail(kNoPicture);
    own.erase(own.begin());
  }
  if (own.size() == 2) return {own[0], own[1], 1, false};
  if (own.size() != 3) throw fail(kNoPicture);
  const bool first = is_colours(own[0]), last = is_colours(own[2]);
  using Layout = Preprocessing::Layout;
  if (how.layout == Layout::kByShape && first && last)
    throw fail("has channels first or last; give --layout nchw or nhwc");
  const bool takes_first = how.layout == Layout::kByShape ? first : how.layout == Layout::kChannelsFirst;
  if (!(takes_first ? first : last)) throw fail(kNoPicture);
  return takes_first ? PictureAxes{own[1], own[2], own[0], true} : PictureAxes{own[0], own[1], own[2], false};
}

std::optional<SoundAxes> sound_axes(const Dims& dims) {
  Dims long_axes = dims;
  std::erase(long_axes, 1);
  if (long_axes.size() > 2) return {};
  if (long_axes.empty()) return SoundAxes{};
  if (long_axes.size() == 1) return SoundAxes{long_axes[0], 1, true};
  const auto [channels, frames] = std::minmax(long_axes[0], long_axes[1]);
  return SoundAxes{frames, channels, long_axes[0] <= long_axes[1]};
}

std::vector<float> mean_of_channels(const Preprocessing& how, int64_t channels) {
  return of_channels("--mean", how.mean, channels, 0);
}
std::vector<float> scale_of_channels(const Preprocessing& how, int64_t channels) {
  return of_channels("--scale", how.scale, channels, 1);
}

}  // namespace sinter::convert

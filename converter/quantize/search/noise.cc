#include "converter/quantize/search/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "runtime/core/float_formats.h"

namespace sinter::convert {
namespace {

// Thresholds of cause_of.
constexpr double kFewLevels = 8, kMostLevelsOfFew = 64, kOutlier = 25, kMuchClipped = 1e-3, kSomeShare = 0.1,
                 kLargeShare = 0.4;
constexpr double kScaledGain = 12;  // dB that a factor per channel has to gain

void join(NoiseSums& a, const NoiseSums& b) {
  if (b.elements > 0) {
    a.low = a.elements > 0 ? std::min(a.low, b.low) : b.low;
    a.high = a.elements > 0 ? std::max(a.high, b.high) : b.high;
  }
  a.elements += b.elements, a.clipped += b.clipped;
  a.not_finite += b.not_finite, a.appeared += b.appeared;
  a.signal += b.signal, a.noise += b.noise, a.offset += b.offset, a.clipped_noise += b.clipped_noise;
  a.cross += b.cross, a.rounded += b.rounded, a.sum += b.sum;
}

// Calls `use(element pointer, position in dense order)` for every element.
template <class Use>
void each_element(const TensorView& v, const Use& use) {
  const int64_t count = v.size();
  int64_t at[kMaxRank] = {};
  std::byte* p = v.data;
  for (int64_t i = 0; i < count; ++i) {
    use(p, i);
    for (int d = v.rank - 1; d >= 0; --d) {
      p += v.strides[d];
      if (++at[d] < v.dims[d]) break;
      p -= v.strides[d] * v.dims[d], at[d] = 0;
    }
  }
}

// Elements of 16 bits by value.
template <float (*kValue)(uint16_t), uint16_t (*kBits)(double)>
struct NarrowFloat {
  uint16_t bits = 0;
  NarrowFloat() = default;
  explicit NarrowFloat(double x) : bits(kBits(x)) {}
  explicit operator double() const { return static_cast<double>(kValue(bits)); }
};

// Calls use(T{}) with the element type.
template <class Use>
void with_type(DType t, const Use& use) {
  switch (t) {
    case DType::kFloat32:
      return use(float{});
    case DType::kFloat64:
      return use(double{});
    case DType::kFloat16:
      return use(NarrowFloat<float16_value, float16_bits>{});
    case DType::kBFloat16:
      return use(NarrowFloat<bfloat16_value, bfloat16_bits>{});
    case DType::kInt8:
      return use(int8_t{});
    case DType::kUint8:
      return use(uint8_t{});
    case DType::kInt16:
      return use(int16_t{});
    case DType::kUint16:
      return use(uint16_t{});
    case DType::kInt32:
      return use(int32_t{});
    case DType::kUint32:
      return use(uint32_t{});
    case DType::kInt64:
      return use(int64_t{});
    case DType::kUint64:
      return use(uint64_t{});
    default:
      return;
  }
}

bool integers_of(const TensorView& v, const std::optional<QuantParams>& p) { return p && p->type == v.dtype; }

}  // namespace

bool has_numbers(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16 ||
         is_integer(t);
}

void read_numbers(const TensorView& v, const std::optional<QuantParams>& p, std::vector<double>* out) {
  out->resize(static_cast<size_t>(v.size()));
  const double scale = integers_of(v, p) ? p->scale : 1;
  const double zero = integers_of(v, p) ? static_cast<double>(p->zero_point) : 0;
  with_type(v.dtype, [&](auto type) {
    each_element(v, [&](const std::byte* at, int64_t i) {
      decltype(type) item;
      std::memcpy(&item, at, sizeof(item));
      (*out)[static_cast<size_t>(i)] = (static_cast<double>(item) - zero) * scale;
    });
  });
}

void write_numbers(const TensorView& v, const std::optional<QuantParams>& p, const std::vector<double>& x) {
  const bool rounds = integers_of(v, p);
  with_type(v.dtype, [&](auto type) {
    using T = decltype(type);
    each_element(v, [&](std::byte* at, int64_t i) {
      const double number = x[static_cast<size_t>(i)];
      const T item =
          static_cast<T>(rounds ? static_cast<double>(p->quantize(std::isnan(number) ? 0 : number)) : number);
      std::memcpy(at, &item, sizeof(item));
    });
  });
}

std::string exact_name(const std::string& name, bool* rescaled) {
  static constexpr std::string_view kScaled = ".scaled";
  static constexpr std::string_view kEndings[] = {
      ".int8", ".int16", ".uint8", "_QuantizeLinear_Output", "_DequantizeLinear_Output", "_quantized"};
  const auto cut = [](std::string& text, std::string_view ending) {
    const bool has = text.size() > ending.size() && text.ends_with(ending);
    if (has) text.resize(text.size() - ending.size());
    return has;
  };
  std::string exact = name;
  for (const std::string_view ending : kEndings)
    if (cut(exact, ending)) break;
  const bool scaled = cut(exact, kScaled);
  if (rescaled != nullptr) *rescaled = scaled;
  return exact;
}

double decibels(double signal, double noise) {
  if (!(noise > 0)) return noise == 0 ? 999 : -999;
  return signal > 0 && std::isfinite(noise) ? 10 * std::log10(signal / noise) : -999;
}

NoiseSums::Line NoiseSums::line() const {
  if (elements == 0) return {};
  const auto n = static_cast<double>(elements);
  const double other = sum + offset;  // of the rounded
  const double spread = signal - sum * sum / n;
  const double factor = spread > 1e-12 * signal ? (cross - sum * other / n) / spread : 0;
  return {factor, (other - factor * sum) / n};
}

double NoiseSums::off_line() const {
  if (elements == 0) return 0;
  const auto n = static_cast<double>(elements);
  const double other = sum + offset;
  const double x = signal - sum * sum / n, y = rounded - other * other / n, xy = cross - sum * other / n;
  return y > 1e-12 * rounded ? std::max(0.0, x - xy * xy / y) : std::max(0.0, x);
}

double NoiseSums::fitted_noise() const {
  return rounded > 0 ? std::max(0.0, signal - cross * cross / rounded) : signal;
}

double ValueNoise::fitted_db() const {
  if (all.appeared > 0) return -999;
  double left = 0;
  for (const NoiseSums& c : channels) left += c.fitted_noise();
  return channels.empty() ? decibels(all.signal, all.fitted_noise()) : decibels(all.signal, left);
}

bool ValueNoise::scaled() const {
  const double db = all.db();
  return !rescaled && db < 20 && db > -999 && fitted_db() > db + kScaledGain;
}

int64_t ValueNoise::levels() const {
  if (!params) return 0;
  const QuantRange range = quant_range(params->type);
  return range.max - range.min + 1;
}

double ValueNoise::levels_used() const {
  if (!params || !(params->scale > 0) || all.elements == 0) return 0;
  // Numbers beyond all integers are clipped and do not use one.
  return static_cast<double>(params->quantize(all.high) - params->quantize(all.low) + 1);
}

int64_t ValueNoise::worst_channel() const {
  int64_t worst = -1;
  for (size_t c = 0; c < channels.size(); ++c) {
    const double db = channels[c].db();
    // Where nothing should be, the noise is compared with what the other channels hold.
    if (channels[c].signal == 0 && channels[c].noise < 1e-4 * all.signal) continue;
    if (worst < 0 || db < channels[static_cast<size_t>(worst)].db()) worst = static_cast<int64_t>(c);
  }
  return worst;
}

int64_t ValueNoise::poor_channels(double most_levels) const {
  if (!params || !(params->scale > 0)) return 0;
  return std::count_if(channels.begin(), channels.end(), [&](const NoiseSums& c) {
    const double range = c.high - c.low;
    return range > 0 && range < most_levels * params->scale;
  });
}

double ValueNoise::peak_over_rms() const {
  const double squares = rescaled ? all.rounded : all.signal;
  if (all.elements == 0 || !(squares > 0)) return 0;
  return std::max(std::fabs(all.low), std::fabs(all.high)) /
         std::sqrt(squares / static_cast<double>(all.elements));
}

double ValueNoise::clipped_share() const {
  return all.elements == 0 ? 0 : static_cast<double>(all.clipped) / static_cast<double>(all.elements);
}

double ValueNoise::offset_share() const {
  const auto of = [](const NoiseSums& s) {
    return s.elements == 0 ? 0 : s.offset * s.offset / static_cast<double>(s.elements);
  };
  double sum = 0;
  for (const NoiseSums& c : channels) sum += of(c);
  if (channels.empty()) sum = of(all);
  // An offset of one element is that element's error.
  const bool many = !channels.empty() ? channels.front().elements >= 16 : all.elements >= 16;
  return many && all.noise > 0 ? sum / all.noise : 0;
}

NoiseMeter::NoiseMeter(int64_t channels, std::optional<QuantParams> params, bool rescaled) {
  noise_.params = params, noise_.rescaled = rescaled;
  if (channels > 0 && channels <= kMostChannels) noise_.channels.resize(static_cast<size_t>(channels));
}

void NoiseMeter::add(std::span<const double> exact, std::span<const double> rounded) {
  if (rounded.size() != exact.size()) throw std::logic_error("noise of tensors that do not match");
  if (!noise_.channels.empty() && exact.size() % noise_.channels.size() != 0) noise_.channels.clear();
  double least = -std::numeric_limits<double>::infinity(), most = -least;
  const bool rescaled = noise_.rescaled;
  if (noise_.params && !rescaled) {
    const QuantParams& p = *noise_.params;
    const QuantRange range = quant_range(p.type);
    least = (static_cast<double>(range.min - p.zero_point) - 0.5) * p.scale;
    most = (static_cast<double>(range.max - p.zero_point) + 0.5) * p.scale;
  }
  const size_t channels = std::max<size_t>(noise_.channels.size(), 1);
  NoiseSums* const sums = noise_.channels.empty() ? &noise_.all : noise_.channels.data();
  for (size_t i = 0, c = 0; i < exact.size(); ++i, c = c + 1 == channels ? 0 : c + 1) {
    NoiseSums& s = sums[c];
    const double x = exact[i], y = rounded[i], error = y - x;
    if (!std::isfinite(error)) {
      s.not_finite += !(x == y || (std::isnan(x) && std::isnan(y)));
      s.appeared += std::isfinite(x);
      continue;
    }
    const double held = rescaled ? y : x;  // what the step is to be compared with
    s.low = s.elements == 0 ? held : std::min(s.low, held);
    s.high = s.elements == 0 ? held : std::max(s.high, held);
    ++s.elements;
    s.signal += x * x, s.noise += error * error, s.offset += error, s.sum += x;
    s.cross += x * y, s.rounded += y * y;
    if (x < least || x > most) ++s.clipped, s.clipped_noise += error * error;
  }
}

ValueNoise NoiseMeter::result() const {
  ValueNoise result = noise_;
  if (result.rescaled) {
    const auto fit = [](NoiseSums& s) { s.noise = s.off_line(), s.offset = 0; };
    for (NoiseSums& c : result.channels) fit(c);
    if (result.channels.empty()) fit(result.all);
  }
  if (!result.channels.empty()) {
    result.all = {};
    for (const NoiseSums& c : result.channels) join(result.all, c);
  }
  return result;
}

void NoiseMeter::rescale(std::vector<double>& exact) const {
  if (!noise_.rescaled) return;
  std::vector<NoiseSums::Line> lines;
  for (const NoiseSums& c : noise_.channels) lines.push_back(c.line());
  if (lines.empty()) lines.push_back(noise_.all.line());
  for (size_t i = 0, c = 0; i < exact.size(); ++i, c = c + 1 == lines.size() ? 0 : c + 1)
    exact[i] = lines[c].factor * exact[i] + lines[c].shift;
}

bool NoiseMeter::certain() const {
  constexpr uint64_t kFew = 12;
  if (!noise_.rescaled) return true;
  const NoiseSums& s = noise_.channels.empty() ? noise_.all : noise_.channels.front();
  return s.elements >= kFew;
}

std::string cause_of(const ValueNoise& n) {
  std::string text;
  const auto say = [&](const std::string& what) { text += text.empty() ? what : "; " + what; };
  const auto elements = [](uint64_t count) {
    return count == 1 ? std::string("1 element is") : fmt::format("{} elements are", count);
  };
  if (n.all.appeared > 0) say(elements(n.all.appeared) + " NaN or infinite, and finite in the reference");
  if (n.all.not_finite > n.all.appeared)
    say(elements(n.all.not_finite - n.all.appeared) +
        " NaN or infinite in the reference, and a different number here");
  if (n.all.noise == 0) return text;
  if (n.scaled()) {
    say(fmt::format("held with a separate factor per channel ({:.1f} dB without these)", n.fitted_db()));
    return text;
  }
  const double clipped = n.all.clipped_noise / n.all.noise;
  if ((n.clipped_share() >= kMuchClipped && clipped >= kSomeShare) || clipped >= kLargeShare) {
    const double share = 100 * n.clipped_share();
    say(fmt::format("clipped {} %, {:.0f} % of the noise",
                    share < 10 ? fmt::format("{:.2g}", share) : fmt::format("{:.0f}", share), 100 * clipped));
  }
  const int64_t poor = n.poor_channels(kFewLevels);
  const double levels = n.levels_used();
  if (poor > 0 && n.channels.size() > 1)
    say(fmt::format("{} of {} channels use fewer than {:.0f} levels", poor, n.channels.size(), kFewLevels));
  else if (n.params && levels > 0 && levels < kMostLevelsOfFew && n.levels() > 2 * kMostLevelsOfFew)
    say(fmt::format("uses {:.0f} of {} levels", levels, n.levels()));
  if (n.params && n.peak_over_rms() >= kOutlier)
    say(fmt::format("range {:.0f} times the typical value: outliers", n.peak_over_rms()));
  if (n.offset_share() >= kLargeShare)
    say(fmt::format("a constant shift per channel is {:.0f} % of the noise", 100 * n.offset_share()));
  return text;
}

}  // namespace sinter::convert

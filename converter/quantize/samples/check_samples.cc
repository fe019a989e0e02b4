// Possible mistakes in data that fits the model, with the numbers, for the user to judge.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>

#include "converter/quantize/samples/sample_streams.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostChannels = 1024;
// Inputs of fewer numbers are times, sizes and switches, which may be of any size.
constexpr int64_t kFewNumbers = 16;
// Magnitudes beyond which no model is trained.
constexpr double kHuge = 1e9, kTiny = 1e-6;
// Pictures of at most one, or normalized, divided by 255 once more.
constexpr double kTwiceDivided = 3.1 / 255;
// An outlier reaches this many times what all other samples do, these at most this many times their median;
// of fewer samples none can be called one.
constexpr double kOutlier = 8, kSpread = 4;
constexpr size_t kFewestForOutliers = 8, kSamplesPerOutlier = 10;

// The axis of channels, guessed from the shape: axis 1 or the last, whichever is shorter. -1: none.
int channel_axis(const Dims& dims) {
  if (dims.size() < 2) return -1;
  const int last = static_cast<int>(dims.size()) - 1;
  const int axis = dims.size() > 2 && dims[1] <= dims.back() ? 1 : last;
  const int64_t n = dims[static_cast<size_t>(axis)];
  return n >= 2 && n <= kMostChannels ? axis : -1;
}

// The observations of all samples of one float input.
class InputWatch {
 public:
  explicit InputWatch(const SampleInput& input) : input_(input), axis_(channel_axis(input.dims)) {
    if (axis_ >= 0 && !input.minima.empty()) axis_ = -1;  // channels or not, they may be fewer
    const size_t n = axis_ < 0 ? 1 : static_cast<size_t>(input.dims[static_cast<size_t>(axis_)]);
    low_.assign(n, kInfinity), high_.assign(n, -kInfinity);
    first_.fill(-1);
  }

  void look(const Constant& array, int64_t sample) {
    if (array.size() == 0) return;
    const LoadedBytes loaded = array.load();
    if (array.dtype() == DType::kFloat32)
      scan(reinterpret_cast<const float*>(loaded.bytes.data()), array.dims(), sample);
    else if (array.dtype() == DType::kFloat64)
      scan(reinterpret_cast<const double*>(loaded.bytes.data()), array.dims(), sample);
    else
      return;
    ++samples_;
  }

  void report(Diagnostics& diagnostics) const {
    if (samples_ == 0) return;
    const double low = *std::min_element(low_.begin(), low_.end());
    const double high = *std::max_element(high_.begin(), high_.end());
    const auto text = [&](const std::string& message) {
      return fmt::format("calibration data, input '{}': {}", input_.name, message);
    };
    const auto warn = [&](const std::string& message, std::string remedy) {
      diagnostics.warn("", "", text(message), std::move(remedy));
    };
    const bool few = element_count(input_.dims) < kFewNumbers;
    if (low == high) {
      const std::string message = fmt::format("every number is {:g}", low);
      if (!few)
        warn(message, "give representative data, or ranges will be too small");
      else if (samples_ > 1)
        diagnostics.note("", "", text(message));
      return;
    }
    const double reach = std::max(high, -low);
    if (reach > kHuge || (!few && reach < kTiny))
      return warn(fmt::format("numbers from {:g} to {:g}, which no model is trained with", low, high),
                  "use the scaling that the model was trained with");
    if (few) return;
    constant_channels(diagnostics, warn);
    if (outliers(warn) || scales_apart(warn)) return;
    const bool image = input_.dims.size() >= 3 && axis_ >= 0 && low_.size() <= 4;
    const bool picture = image || (input_.dims.size() == 4 && (input_.dims[1] == 1 || input_.dims[3] == 1));
    if (picture && whole_ && low >= 0 && high > 64 && high <= 255)
      diagnostics.note(
          "", "",
          fmt::format("calibration data, input '{}': whole numbers from {:g} to {:g}, like unscaled bytes; "
                      "right only if the model scales them itself",
                      input_.name, low, high));
    if (picture && reach <= kTwiceDivided)
      warn(fmt::format("numbers from {:g} to {:g}, as if divided by 255 twice", low, high),
           "use the scaling that the model was trained with");
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  template <class T>
  void scan(const T* x, const Dims& dims, int64_t sample) {
    int64_t outer = 1, inner = 1;
    const auto channels = static_cast<int64_t>(low_.size());
    for (int a = 0; a < axis_; ++a) outer *= dims[static_cast<size_t>(a)];
    for (size_t a = static_cast<size_t>(axis_ + 1); a < dims.size(); ++a) inner *= dims[a];
    T reach = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t c = 0; c < channels; ++c) {
        T low = x[0], high = x[0];
        for (int64_t i = 0; i < inner; ++i) {
          low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high;
        }
        if (whole_)
          for (int64_t i = 0; i < inner && whole_; ++i) whole_ = x[i] == std::floor(x[i]);
        x += inner;
        double& l = low_[static_cast<size_t>(c)];
        double& h = high_[static_cast<size_t>(c)];
        l = std::min<double>(l, low), h = std::max<double>(h, high);
        reach = std::max({reach, high, static_cast<T>(-low)});
      }
    reaches_of_samples_.push_back(static_cast<double>(reach));
    if (reach > 0) {
      const int octave = std::clamp(std::ilogb(static_cast<double>(reach)), -128, 127) + 128;
      ++reaches_[static_cast<size_t>(octave)];
      if (first_[static_cast<size_t>(octave)] < 0) first_[static_cast<size_t>(octave)] = sample;
    }
  }

  template <class Warn>
  void constant_channels(Diagnostics& diagnostics, const Warn& warn) const {
    if (axis_ < 0 || samples_ * element_count(input_.dims) < 8 * static_cast<int64_t>(low_.size())) return;
    std::vector<std::string> constant;
    size_t zero = 0;
    for (size_t c = 0; c < low_.size(); ++c)
      if (low_[c] == high_[c]) {
        zero += low_[c] == 0;
        if (constant.size() < 8)
          constant.push_back(fmt::format("{} ({:g})", c, low_[c]));
        else if (constant.size() == 8)
          constant.emplace_back("...");
      }
    if (constant.empty()) return;
    const std::string message =
        fmt::format("along axis {}, these of {} channels never change: {}{}", axis_, low_.size(),
                    fmt::join(constant, ", "),
                    zero > 0 ? "; a zero channel may have been lost when the data was loaded" : "");
    // Columns of a table and border pixels of a flattened image may well be constant.
    if (input_.dims.size() > 2)
      warn(message, "check how the data was made");
    else
      diagnostics.note("", "", fmt::format("calibration data, input '{}': {}", input_.name, message));
  }

  // Few samples far beyond all others: one of them widens every range.
  template <class Warn>
  bool outliers(const Warn& warn) const {
    const size_t n = reaches_of_samples_.size();
    if (n < kFewestForOutliers) return false;
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return reaches_of_samples_[a] < reaches_of_samples_[b]; });
    const auto reach = [&](size_t rank) { return reaches_of_samples_[order[rank]]; };
    const size_t most = std::max<size_t>(1, n / kSamplesPerOutlier);
    for (size_t usual = n - 1; usual >= n - most; --usual) {
      const double rest = reach(usual - 1);
      if (!(reach(usual) > kOutlier * rest) || rest > kSpread * reach(usual / 2)) continue;
      warn(
          fmt::format("{} of {} samples reach {:g} or more where the others reach {:g} at most (sample {} is "
                      "one of them)",
                      n - usual, n, reach(usual), rest, order[usual]),
          "repair or remove outliers: one of them makes the steps of every range too large");
      return true;
    }
    return false;
  }

  // Samples in two groups whose magnitudes are far apart: some were scaled, others not.
  template <class Warn>
  bool scales_apart(const Warn& warn) const {
    int last = -1;
    for (int o = 0; o < 256; ++o) {
      if (reaches_[static_cast<size_t>(o)] == 0) continue;
      if (last >= 0 && o - last >= 6) {
        int64_t small = 0;
        for (int k = 0; k <= last; ++k) small += reaches_[static_cast<size_t>(k)];
        const bool few_small = small * 2 <= samples_;
        const auto odd = static_cast<size_t>(few_small ? last : o);
        warn(fmt::format("{} of {} samples stay below {:g} where the others reach {:g} or more (sample {} is "
                         "one of the "
                         "fewer)",
                         small, samples_, std::ldexp(1.0, last - 127), std::ldexp(1.0, o - 128), first_[odd]),
             "scale all samples alike");
        return true;
      }
      last = o;
    }
    return false;
  }

  const SampleInput& input_;
  int axis_;
  int64_t samples_ = 0;
  std::vector<double> low_, high_;          // per channel
  std::array<int64_t, 256> reaches_ = {};   // samples by the exponent of their largest magnitude
  std::array<int64_t, 256> first_;          // ... and one of them
  std::vector<double> reaches_of_samples_;  // largest magnitudes, in order
  bool whole_ = true;
};

}  // namespace

void check_samples(SampleSource& samples, const std::vector<SampleInput>& inputs, Diagnostics& diagnostics) {
  if (!samples.is_file()) return;
  std::vector<InputWatch> watches;
  for (const SampleInput& input : inputs) watches.emplace_back(input);
  Sample sample;
  int64_t count = 0;
  size_t first_hash = 0;
  bool equal = true;
  for (; samples.next(&sample); ++count) {
    size_t hash = 0;
    for (size_t i = 0; i < sample.size(); ++i) {
      watches[i].look(*sample[i], count);
      if (!equal) continue;
      const LoadedBytes loaded = sample[i]->load();
      const std::string_view bytes(reinterpret_cast<const char*>(loaded.bytes.data()), loaded.bytes.size());
      hash = hash * 31 + std::hash<std::string_view>()(bytes);
    }
    if (count == 0) first_hash = hash;
    equal &= hash == first_hash;
  }
  samples.rewind();
  for (const InputWatch& watch : watches) watch.report(diagnostics);
  if (equal && count > 1)
    diagnostics.warn("", "", fmt::format("calibration data: all {} samples are the same", count),
                     "ranges need samples that differ");
}

}  // namespace sinter::convert

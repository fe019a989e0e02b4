#include "converter/quantize/ranges/calibrators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "converter/ir/integer_weights.h"

namespace sinter::convert {
namespace {

Range with_zero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

// std::floor of numbers below 2^51.
double whole_below(double t) {
  const double near = nearest_whole(t);
  return near > t ? near - 1 : near;
}

// The integral of (t - round(t))^2 from 0 to t.
double rounding_integral(double t) {
  const double k = whole_below(t + 0.5), d = t - k;
  return k / 12 + d * d * d / 3;
}

// rounding_integral of ends of bins, of which one often begins where the one before ends.
class RoundingIntegrals {
 public:
  // Mean of (x - round(x))^2 over [a, b], in steps.
  double mean(double a, double b) {
    if (b - a < 1e-4) {
      const double x = (a + b) / 2, d = x - whole_below(x + 0.5);
      return d * d;
    }
    const double before = a == end_ ? last_ : rounding_integral(a);
    end_ = b, last_ = rounding_integral(b);
    return (last_ - before) / (b - a);
  }

 private:
  double end_ = 0, last_ = 0;  // of 0
};

// Mean of x^2 over [a, b].
double mean_of_squares(double a, double b) { return (a * a + a * b + b * b) / 3; }

}  // namespace

QuantScale scale_of(const Range& range, const Levels& levels) {
  QuantScale g;
  const double steps = static_cast<double>(levels.count - 1);
  if (levels.symmetric) {
    g.zero_point = (levels.count - 1) / 2;
    const double reach = std::max(-range.low, range.high);
    if (reach > 0) g.scale = reach / static_cast<double>(g.zero_point);
  } else if (range.high > range.low) {
    g.scale = (range.high - range.low) / steps;
    g.zero_point = static_cast<int64_t>(std::clamp(std::nearbyint(-range.low / g.scale), 0.0, steps));
  }
  g.low = -static_cast<double>(g.zero_point) * g.scale;
  g.high = static_cast<double>(levels.count - 1 - g.zero_point) * g.scale;
  return g;
}

double RangeError::sqnr_db() const {
  if (total() <= 0) return 999;
  return signal <= 0 ? -999 : 10 * std::log10(signal / total());
}

namespace {

// Without the signal.
RangeError error_of(const Histogram& histogram, const Range& range, const Levels& levels) {
  RangeError e;
  if (histogram.total == 0) return e;
  const QuantScale g = scale_of(range, levels);
  RoundingIntegrals rounding;
  // The outermost values take what rounds to them, and clipping is measured from them.
  for (const Histogram::Bin& bin : histogram.bins) {
    const auto n = static_cast<double>(bin.count);
    const double width = bin.high - bin.low;
    const double low = std::max(bin.low, g.low), high = std::min(bin.high, g.high);
    const bool whole = low == bin.low && high == bin.high;
    const double inside = whole ? 1 : width > 0 ? std::max(0.0, high - low) / width : (low <= high ? 1 : 0);
    if (inside > 0)
      e.rounding += n * inside * g.scale * g.scale * rounding.mean(low / g.scale, high / g.scale);
    if (bin.high > g.high) {
      const double from = std::max(bin.low, g.high);
      e.clipping +=
          n * (width > 0 ? (bin.high - from) / width : 1) * mean_of_squares(from - g.high, bin.high - g.high);
    }
    if (bin.low < g.low) {
      const double to = std::min(bin.high, g.low);
      e.clipping +=
          n * (width > 0 ? (to - bin.low) / width : 1) * mean_of_squares(g.low - to, g.low - bin.low);
    }
  }
  const auto total = static_cast<double>(histogram.total);
  e.rounding /= total, e.clipping /= total;
  return e;
}

}  // namespace

RangeError expected_error(const Histogram& histogram, const Range& range, const Levels& levels) {
  RangeError e = error_of(histogram, range, levels);
  for (const Histogram::Bin& bin : histogram.bins)
    e.signal += static_cast<double>(bin.count) * mean_of_squares(bin.low, bin.high);
  if (histogram.total > 0) e.signal /= static_cast<double>(histogram.total);
  return e;
}

namespace {

double weighted(const RangeError& e, double clipping_weight) {
  return e.rounding + clipping_weight * e.clipping;
}

// Returns the part of a range within `share` of the farther end on either side of zero.
Range within(const Range& whole, double share) {
  const double reach = std::max(-whole.low, whole.high) * share;
  return {std::max(whole.low, -reach), std::min(whole.high, reach)};
}

// The share that gives the smallest error.
Range least_square(const TensorSummary& s, const Levels& levels) {
  Range best = with_zero(s.all.min, s.all.max);
  const Range whole = best;
  double least = std::numeric_limits<double>::infinity();
  const auto attempt = [&](double share) {
    const Range r = within(whole, share);
    const double error = error_of(s.histogram, r, levels).total();
    if (error < least) least = error, best = r;
    return error;
  };
  // Evenly spaced ratios, then finer around the best.
  double at = 1;
  for (double share = 1; share > 1e-4; share *= 0.9)
    if (const double before = least; attempt(share) < before) at = share;
  for (const double step : {0.97, 0.99}) {
    const double centre = at;
    for (int k = -3; k <= 3; ++k) {
      const double share = centre * std::pow(step, k);
      if (share > 1) continue;
      if (const double before = least; attempt(share) < before) at = share;
    }
  }
  return best;
}

// Divergence of the clipped distribution from the same at `levels` steps, over evenly wide bins.
Range least_divergence(const TensorSummary& s, const Levels& levels) {
  constexpr size_t kFine = 4096;
  const Range whole = with_zero(s.all.min, s.all.max);
  const double width = (whole.high - whole.low) / kFine;
  if (width <= 0 || levels.count * 4 > static_cast<int64_t>(kFine)) return whole;
  std::vector<double> mass(kFine);
  for (const Histogram::Bin& bin : s.histogram.bins) {
    // Zero is exact in every range. Counted, the many zeros behind a ReLU would call for ever finer steps.
    if (bin.low == 0 && bin.high == 0) continue;
    const double a = (bin.low - whole.low) / width, b = (bin.high - whole.low) / width;
    const auto first = static_cast<size_t>(std::clamp(a, 0.0, kFine - 1.0));
    const auto last = static_cast<size_t>(std::clamp(b, 0.0, kFine - 1.0));
    for (size_t i = first; i <= last; ++i) {
      const double part = std::min(b, static_cast<double>(i + 1)) - std::max(a, static_cast<double>(i));
      mass[i] += static_cast<double>(bin.count) * (b > a        ? std::max(0.0, part) / (b - a)
                                                   : i == first ? 1
                                                                : 0);
    }
  }
  // Sums over all bins before one: their masses m, the number of bins that have any, and m log m.
  std::vector<double> before(kFine + 1, 0), logs(kFine + 1, 0);
  std::vector<uint32_t> used(kFine + 1, 0);
  const auto with_log = [](double m) { return m > 0 ? m * std::log(m) : 0; };
  for (size_t i = 0; i < kFine; ++i) {
    before[i + 1] = before[i] + mass[i], used[i + 1] = used[i] + (mass[i] > 0);
    logs[i + 1] = logs[i] + with_log(mass[i]);
  }
  const double total = before[kFine];
  constexpr double kLeastShare = 1e-12;
  Range best = whole;
  double least = std::numeric_limits<double>::infinity();
  const auto count = static_cast<size_t>(levels.count);
  for (double share = 1; share > 1e-3; share *= 0.96) {
    const Range r = within(whole, share);
    const auto begin = static_cast<size_t>(std::lround((r.low - whole.low) / width));
    const auto kept = static_cast<size_t>(std::lround((r.high - r.low) / width));
    if (kept < count * 2) break;
    const size_t end = std::min(kFine, begin + kept);
    const double inside = before[end] - before[begin];
    if (inside <= 0) continue;
    // Clipped numbers are at the ends of the range.
    const double lower = before[begin], upper = total - before[end];
    const double first = mass[begin], last = mass[end - 1];
    double sum = logs[end] - logs[begin] - with_log(first) - with_log(last) + with_log(first + lower) +
                 with_log(last + upper);
    for (size_t level = 0; level < count; ++level) {
      const size_t from = begin + level * (end - begin) / count,
                   to = begin + (level + 1) * (end - begin) / count;
      double own = before[to] - before[from];
      if (used[to] == used[from]) continue;
      const double each = own / (used[to] - used[from]) / inside;
      if (level == 0 && first > 0) own += lower;
      if (level + 1 == count && last > 0) own += upper;
      sum -= own * std::log(std::max(each, kLeastShare));
    }
    if (first <= 0) sum -= lower * std::log(kLeastShare);
    if (last <= 0) sum -= upper * std::log(kLeastShare);
    const double divergence = sum / total - std::log(total);
    if (divergence < least - 1e-12) least = divergence, best = r;
  }
  return best;
}

// Moves each end by itself while that helps.
Range refine(const TensorSummary& s, Range best, const Levels& levels, double clipping_weight) {
  const Range whole = with_zero(s.all.min, s.all.max);
  const auto error = [&](const Range& r) {
    return weighted(error_of(s.histogram, r, levels), clipping_weight);
  };
  double least = error(best);
  for (const double step : {0.8, 0.94, 0.985})
    for (int round = 0; round < 8; ++round) {
      const Range start = best;
      for (const double f : {step, 1 / step})
        for (const bool upper : {true, false}) {
          Range r = best;
          if (upper)
            r.high = std::min(r.high * f, whole.high);
          else
            r.low = std::max(r.low * f, whole.low);
          if (r == best) continue;
          if (const double e = error(r); e < least) least = e, best = r;
        }
      if (best == start) break;
    }
  return best;
}

}  // namespace

const char* calibrator_name(Calibrator calibrator) {
  switch (calibrator) {
    case Calibrator::kBest:
      return "best";
    case Calibrator::kMinMax:
      return "minmax";
    case Calibrator::kMovingAverage:
      return "moving-average";
    case Calibrator::kPercentile:
      return "percentile";
    case Calibrator::kEntropy:
      return "entropy";
    case Calibrator::kMse:
      return "mse";
  }
  return "";
}

std::optional<CalibratorOptions> parse_calibrator(std::string_view text) {
  CalibratorOptions options;
  const size_t at = text.find('=');
  const std::string_view name = text.substr(0, at);
  const auto* const found = std::find_if(std::begin(kCalibrators), std::end(kCalibrators),
                                         [&](Calibrator c) { return name == calibrator_name(c); });
  if (found == std::end(kCalibrators)) return std::nullopt;
  options.rule = *found;
  if (at == std::string_view::npos) return options;
  const std::string_view number = text.substr(at + 1);
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), options.percentile);
  const bool sound = fault == std::errc() && end == number.data() + number.size() &&
                     options.percentile >= 50 && options.percentile <= 100;
  if (options.rule != Calibrator::kPercentile || !sound) return std::nullopt;
  return options;
}

std::string to_string(const CalibratorOptions& options) {
  if (options.rule == Calibrator::kPercentile) return fmt::format("percentile={:g}", options.percentile);
  return calibrator_name(options.rule);
}

Range propose_range(const TensorSummary& s, Calibrator rule, double percentile, const Levels& levels) {
  switch (rule) {
    case Calibrator::kMovingAverage:
      return with_zero(s.average_min, s.average_max);
    case Calibrator::kPercentile: {
      const double out = (100 - percentile) / 200;
      return with_zero(s.histogram.quantile(out), s.histogram.quantile(1 - out));
    }
    case Calibrator::kEntropy:
      return least_divergence(s, levels);
    case Calibrator::kMse:
      return least_square(s, levels);
    case Calibrator::kBest:
    case Calibrator::kMinMax:
      break;
  }
  return with_zero(s.all.min, s.all.max);
}

ChosenRange choose_range(const TensorSummary& s, const CalibratorOptions& options, const Levels& levels) {
  const auto made = [&](const Range& r, Calibrator rule) {
    return ChosenRange{r, expected_error(s.histogram, r, levels), rule};
  };
  if (options.rule != Calibrator::kBest)
    return made(propose_range(s, options.rule, options.percentile, levels), options.rule);
  ChosenRange best = made(propose_range(s, Calibrator::kMinMax, 100, levels), Calibrator::kMinMax);
  // Another rule has to be clearly better: ranges that clip nothing keep what calibration data lacks.
  const auto better = [&](const RangeError& e) {
    return weighted(e, options.clipping_weight) < 0.99 * weighted(best.error, options.clipping_weight);
  };
  for (const Calibrator rule : kCalibrators) {
    if (rule == Calibrator::kBest || rule == Calibrator::kMinMax) continue;
    for (const double p : {99.9, 99.99, 99.999}) {
      if (rule != Calibrator::kPercentile && p != 99.9) continue;
      const ChosenRange c = made(propose_range(s, rule, p, levels), rule);
      if (better(c.error)) best = c;
    }
  }
  const Range refined = refine(s, best.range, levels, options.clipping_weight);
  if (const RangeError e = expected_error(s.histogram, refined, levels); better(e))
    best.range = refined, best.error = e, best.rule = Calibrator::kBest;
  return best;
}

}  // namespace sinter::convert

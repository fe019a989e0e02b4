#include "converter/quantize/ranges/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>

#include "converter/quantize/cpu_tier.h"

namespace sinter::convert {
namespace {

#define SINTER_LOOPS "converter/quantize/ranges/scan-inl.h"
#include "converter/quantize/every_tier-inl.h"

constexpr int kShift = 23 - std::bit_width(unsigned{kBinsPerOctave - 1});
constexpr size_t kBins = size_t{1} << (32 - kShift);  // both signs
constexpr size_t kSign = kBins / 2;
constexpr int64_t kLanes = 16;           // of a vector
constexpr int64_t kLeastVectors = 8;     // of a block, so that a sum does not wait for the one before
constexpr int64_t kMostVectors = 64;     // whose results fit the first cache
constexpr int64_t kFlushedBlocks = 512;  // before float sums go into double ones

double edge(size_t bin) { return std::bit_cast<float>(static_cast<uint32_t>(bin << kShift)); }

constexpr float kNothing = std::numeric_limits<float>::infinity();

}  // namespace

double Histogram::quantile(double f) const {
  if (bins.empty()) return 0;
  double before = 0;
  const double wanted = f * static_cast<double>(total);
  for (const Bin& bin : bins) {
    const auto n = static_cast<double>(bin.count);
    if (before + n >= wanted) return bin.low + (bin.high - bin.low) * std::max(0.0, wanted - before) / n;
    before += n;
  }
  return bins.back().high;
}

double Histogram::mean_square() const {
  double sum = 0;
  for (const Bin& b : bins)
    sum += static_cast<double>(b.count) * (b.low * b.low + b.low * b.high + b.high * b.high) / 3;
  return total == 0 ? 0 : sum / static_cast<double>(total);
}

TensorStatistics::TensorStatistics() : TensorStatistics(Options{}) {}

TensorStatistics::TensorStatistics(const Options& options)
    : options_(options),
      channels_(static_cast<size_t>(std::max<int64_t>(options.channels, 1)), Moments{kNothing, -kNothing, 0}),
      counts_(static_cast<uint64_t*>(std::calloc(kBins, sizeof(uint64_t)))) {
  if (!counts_) throw std::bad_alloc();
}

void TensorStatistics::add(std::span<const float> values) {
  const auto n = static_cast<int64_t>(values.size());
  const auto channels = static_cast<int64_t>(channels_.size());
  if (n % channels != 0) throw std::logic_error("statistics of channels that do not divide the tensor");
  ++samples_;
  channel_elements_ += static_cast<uint64_t>(n / channels);
  if (n == 0) return;
  scan(values.data(), n);
  count(values.data(), n);
}

void TensorStatistics::add(std::span<const double> values) {
  copy_.resize(values.size());
  std::transform(values.begin(), values.end(), copy_.begin(), [](double x) { return static_cast<float>(x); });
  add(std::span<const float>(copy_));
}

void TensorStatistics::scan(const float* values, int64_t n) {
  static const auto best = SINTER_BEST_LOOP(scan_blocks);
  const auto channels = static_cast<int64_t>(channels_.size());
  // A block is a whole number of vectors and of rows, or, of rows that do not allow that, one row.
  const int64_t period = std::lcm(channels, kLanes) / kLanes;
  const bool rows = period > kMostVectors;
  const int64_t vectors = rows ? channels / kLanes : period * ((kLeastVectors + period - 1) / period);
  const int64_t width = rows ? channels : vectors * kLanes;  // elements of a block
  const auto lanes = static_cast<size_t>(width);
  lanes_.resize(3 * lanes);
  float* const low = lanes_.data();
  float* const high = low + lanes;
  float* const sums = high + lanes;
  std::fill(low, low + lanes, kNothing);
  std::fill(high, high + lanes, -kNothing);
  std::fill(sums, sums + lanes, 0.0f);
  now_.assign(channels_.size(), Moments{kNothing, -kNothing, 0});
  const auto flush = [&] {
    for (size_t i = 0, c = 0; i < lanes; ++i, c = c + 1 == now_.size() ? 0 : c + 1) {
      Moments& m = now_[c];
      m.min = std::min(m.min, low[i]), m.max = std::max(m.max, high[i]);
      m.sum += sums[i];
      sums[i] = 0;
    }
  };
  const auto single = [&](int64_t lane, float x) {
    low[lane] = x < low[lane] ? x : low[lane], high[lane] = x > high[lane] ? x : high[lane];
    sums[lane] += x;
  };
  const int64_t blocks = n / width;
  for (int64_t b = 0; b < blocks;) {
    const int64_t some = std::min(blocks - b, kFlushedBlocks);
    if (b > 0) flush();
    if (rows) {
      for (int64_t r = 0; r < some; ++r) {
        const float* row = values + (b + r) * width;
        best(row, 1, vectors, low, high, sums);
        for (int64_t i = vectors * kLanes; i < width; ++i) single(i, row[i]);
      }
    } else {
      best(values + b * width, some, vectors, low, high, sums);
    }
    b += some;
  }
  for (int64_t i = blocks * width; i < n; ++i) single(i - blocks * width, values[i]);
  flush();

  // A NaN or an infinity shows in the sums; so do sums beyond float's range, which are then checked element
  // by element.
  bool clean = true;
  for (const Moments& m : now_) clean &= std::isfinite(m.sum);
  uint64_t bad = 0;
  if (!clean) {
    now_.assign(channels_.size(), Moments{kNothing, -kNothing, 0});
    for (int64_t i = 0; i < n; ++i) {
      const float x = values[i];
      if (!std::isfinite(x)) {
        ++bad;
        continue;
      }
      Moments& m = now_[static_cast<size_t>(i % channels)];
      m.min = std::min(m.min, x), m.max = std::max(m.max, x), m.sum += x;
    }
  }
  not_finite_ += bad;
  elements_ += static_cast<uint64_t>(n) - bad;
  if (bad == static_cast<uint64_t>(n)) return;
  float least = kNothing, most = -kNothing;
  for (size_t c = 0; c < now_.size(); ++c) {
    Moments& m = channels_[c];
    m.min = std::min(m.min, now_[c].min), m.max = std::max(m.max, now_[c].max), m.sum += now_[c].sum;
    least = std::min(least, now_[c].min), most = std::max(most, now_[c].max);
  }
  // The plain mean of the first hundred samples, then one that forgets.
  const double share = std::max(1.0 / static_cast<double>(samples_), 0.01);
  average_min_ += share * (least - average_min_);
  average_max_ += share * (most - average_max_);
  maxima_.add(most), negated_minima_.add(-least);
}

// Runs of 64 elements, each from a place of its own stretch of the tensor, another one in every sample.
void TensorStatistics::count(const float* values, int64_t n) {
  constexpr int64_t kRun = 64;
  uint64_t* counts = counts_.get();
  const auto take = [&](const float* x, int64_t k) {
    for (int64_t i = 0; i < k; ++i) ++counts[std::bit_cast<uint32_t>(x[i]) >> kShift];
  };
  const int64_t most = std::max(options_.most_counted, kRun);
  if (n <= most) return take(values, n);
  const int64_t runs = most / kRun;
  uint64_t state = samples_ * 0x9E3779B97F4A7C15u;
  for (int64_t r = 0; r < runs; ++r) {
    // Stretches cover the tensor; a run may begin anywhere in its own, and the last one ends with the tensor.
    const int64_t first = r * n / runs, behind = std::min((r + 1) * n / runs, n - kRun + 1);
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const auto span = static_cast<uint64_t>(std::max<int64_t>(behind - first, 1));
    take(values + std::min(first, n - kRun) + static_cast<int64_t>((state >> 32) * span >> 32), kRun);
  }
}

TensorSummary TensorStatistics::summary() const {
  TensorSummary s;
  s.samples = samples_, s.elements = elements_, s.not_finite = not_finite_;
  s.channel_elements = channel_elements_;
  if (elements_ == 0) return s;
  s.all = {kNothing, -kNothing, 0};
  for (const Moments& m : channels_) {
    s.all.min = std::min(s.all.min, m.min), s.all.max = std::max(s.all.max, m.max);
    s.all.sum += m.sum;
  }
  s.average_min = static_cast<float>(average_min_), s.average_max = static_cast<float>(average_max_);
  s.maxima = maxima_.largest(), s.negated_minima = negated_minima_.largest();
  if (options_.channels > 0) {
    s.channels = channels_;
    for (Moments& m : s.channels)
      if (m.min > m.max) m.min = m.max = 0;  // nothing finite in this one
  }
  Histogram& h = s.histogram;
  const double lowest = s.all.min, highest = s.all.max;
  const auto put = [&](double low, double high, uint64_t count) {
    if (count == 0) return;
    h.bins.push_back({std::clamp(low, lowest, highest), std::clamp(high, lowest, highest), count});
    h.total += count;
  };
  constexpr size_t kInfinite = (size_t{255} << 23) >> kShift;  // from here on nothing is finite
  for (size_t bin = kInfinite; --bin > 0;) put(-edge(bin + 1), -edge(bin), counts_[kSign + bin]);
  // Subnormal numbers are zero for every quantizer.
  put(0, 0, counts_[0] + counts_[kSign]);
  for (size_t bin = 1; bin < kInfinite; ++bin) put(edge(bin), edge(bin + 1), counts_[bin]);
  return s;
}

}  // namespace sinter::convert

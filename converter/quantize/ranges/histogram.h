// Statistics of a tensor's values over a stream of samples: exact extremes and sums (per channel too), and a
// histogram of a fixed size.
//
// The bins are spaced as floating-point numbers are: 64 for every power of two, the same for every tensor.
// A number's bin is the upper half of its bits, so counting needs no range, nothing is counted again when the
// range grows, and 1e-3 is known as exactly as 1e3 (outliers do not coarsen the rest). Of a large tensor a
// part is counted that is chosen by the sample's number alone; the extremes are those of all elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "converter/quantize/ranges/tail.h"

namespace sinter::convert {

inline constexpr int kBinsPerOctave = 64;

// The counts, ascending. Zero has a bin of its own with low == high == 0.
struct Histogram {
  struct Bin {
    double low = 0, high = 0;
    uint64_t count = 0;
  };
  std::vector<Bin> bins;  // none is empty; cut at the extremes
  uint64_t total = 0;     // of the counts: elements that were counted

  // The value that the fraction `f` of all elements does not exceed.
  double quantile(double f) const;
  double mean_square() const;
};

// One channel's (last axis) or the whole tensor's numbers, over all samples.
struct Moments {
  float min = 0, max = 0;
  double sum = 0;
};

struct TensorSummary {
  uint64_t samples = 0;
  uint64_t elements = 0;    // finite ones, over all samples
  uint64_t not_finite = 0;  // NaN and infinities: in no other number here
  Moments all;
  float average_min = 0, average_max = 0;  // of the samples' extremes (moving-average)
  // The largest maxima of samples, descending, and their smallest minima, negated: both sides' SampleMaxima.
  std::vector<float> maxima, negated_minima;
  std::vector<Moments> channels;  // empty: not requested
  uint64_t channel_elements = 0;  // finite and not, of each channel
  Histogram histogram;

  double mean() const { return elements == 0 ? 0 : all.sum / static_cast<double>(elements); }
};

class TensorStatistics {
 public:
  struct Options {
    int64_t channels = 0;             // length of the last axis to keep numbers for; 0: none
    int64_t most_counted = 16 << 10;  // elements of a sample that are counted in the histogram
  };
  TensorStatistics();
  explicit TensorStatistics(const Options& options);

  // The tensor's values in one sample; the number of channels divides their number.
  void add(std::span<const float> values);
  void add(std::span<const double> values);
  TensorSummary summary() const;
  uint64_t samples() const { return samples_; }

 private:
  void scan(const float* values, int64_t count);
  void count(const float* values, int64_t count);

  struct Free {
    void operator()(uint64_t* p) const { std::free(p); }
  };
  Options options_;
  uint64_t samples_ = 0, elements_ = 0, not_finite_ = 0;
  double average_min_ = 0, average_max_ = 0;
  SampleMaxima maxima_, negated_minima_;
  std::vector<Moments> channels_;  // one if none were requested
  uint64_t channel_elements_ = 0;
  std::unique_ptr<uint64_t[], Free> counts_;
  std::vector<float> lanes_;  // of scan
  std::vector<Moments> now_;
  std::vector<float> copy_;  // of a sample that has to be narrowed
};

}  // namespace sinter::convert

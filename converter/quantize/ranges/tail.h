// The tail of a value's distribution over samples: what samples that were not observed may reach.
//
// The largest number of each sample (a block maximum) is observed. What these exceed a threshold by follows a
// generalized Pareto distribution, whatever the distribution of the numbers is: shape 0 for exponential
// tails, 1 / a for tails that fall as x^-a, below 0 for bounded ones. Its parameters are estimated from the
// largest quarter by probability-weighted moments, which few samples suffice for; the shape is drawn towards
// that of a slightly long tail, as if ten more samples had it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinter::convert {

// Of so many samples the extremes are kept, and no more exceed a threshold.
inline constexpr size_t kTailSamples = 64;

// The largest numbers of samples, on one side of a tensor, in memory of fixed size.
class SampleMaxima {
 public:
  void add(float maximum);
  // Descending; one more than kTailSamples at most.
  const std::vector<float>& largest() const { return largest_; }

 private:
  std::vector<float> largest_;
};

struct Tail {
  double threshold = 0;  // that is exceeded by
  double share = 0;      // of the samples; 0: there are too few samples to tell
  double scale = 0, shape = 0;

  // Returns the number that one sample in `samples` exceeds.
  double level(double samples) const;
};
// `largest`: descending maxima of all samples, or of the largest; `samples`: of all.
Tail fit_tail(const std::vector<float>& largest, uint64_t samples);

}  // namespace sinter::convert

// From statistics of a tensor's values to the range that its integers represent.
//
// Every rule works on one TensorSummary. A range holds zero, and zero is one of its integers' values. `best`
// takes, of what the other rules propose and what a search around these finds, the range with the smallest
// expected error: rounding inside, clipping outside, both integrated over the histogram.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "converter/quantize/ranges/histogram.h"

namespace sinter::convert {

// The integers that a value may take.
struct Levels {
  int64_t count = 256;
  bool symmetric = false;  // as many below zero as above; of 2^n integers the lowest is not used
};
inline constexpr Levels kInt8Levels{256, false}, kInt16Levels{65535, true};

struct Range {
  double low = 0, high = 0;  // low <= 0 <= high
  bool operator==(const Range&) const = default;
};

// x is stored as round(x / scale) + zero, in 0 .. levels.count - 1.
struct QuantScale {
  double scale = 1;
  int64_t zero_point = 0;
  double low = 0, high = 0;  // the smallest and the largest value that has an integer
};
QuantScale scale_of(const Range& range, const Levels& levels);

// Mean square errors, and of the values themselves.
struct RangeError {
  double rounding = 0, clipping = 0, signal = 0;
  double total() const { return rounding + clipping; }
  double sqnr_db() const;  // 999: no error
};
RangeError expected_error(const Histogram& histogram, const Range& range, const Levels& levels);

enum class Calibrator { kBest, kMinMax, kMovingAverage, kPercentile, kEntropy, kMse };
inline constexpr Calibrator kCalibrators[] = {Calibrator::kBest,          Calibrator::kMinMax,
                                              Calibrator::kMovingAverage, Calibrator::kPercentile,
                                              Calibrator::kEntropy,       Calibrator::kMse};
const char* calibrator_name(Calibrator calibrator);

struct CalibratorOptions {
  Calibrator rule = Calibrator::kBest;
  double percentile = 99.99;  // of the values that stay inside; half of the others on either side
  // The weight of squared clipping errors against rounding errors in `best`. A clipped value is off in a way
  // that does not average out further on.
  double clipping_weight = 1;
};
// "best", "percentile=99.9", ...; nullopt: not a rule.
std::optional<CalibratorOptions> parse_calibrator(std::string_view text);
std::string to_string(const CalibratorOptions& options);

struct ChosenRange {
  Range range;
  RangeError error;
  Calibrator rule = Calibrator::kMinMax;  // that proposed it
};
ChosenRange choose_range(const TensorSummary& summary, const CalibratorOptions& options,
                         const Levels& levels = kInt8Levels);
// The range that one rule proposes (not kBest).
Range propose_range(const TensorSummary& summary, Calibrator rule, double percentile, const Levels& levels);

}  // namespace sinter::convert

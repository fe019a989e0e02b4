// The effect of rounding on a value: its exact numbers are compared with those that it represents after
// quantization, sample by sample, in sums of a fixed size. The cause is given in words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converter/ir/quant_params.h"
#include "runtime/core/tensor_view.h"

namespace sinter::convert {

// Returns the SQNR; 999: no noise; -999: infinite noise, or noise and no signal.
double decibels(double signal, double noise);

// Sums over the elements of one channel (last axis), or of the whole value.
struct NoiseSums {
  uint64_t elements = 0;
  double signal = 0, noise = 0;   // squares of the exact numbers and of the errors
  double offset = 0;              // errors, signed
  double cross = 0, rounded = 0;  // exact * rounded, and squares of the rounded
  double low = 0, high = 0;       // of the exact numbers
  double clipped_noise = 0;       // part of `noise` where the exact number is beyond all integers
  uint64_t clipped = 0;           // how many
  uint64_t not_finite = 0;        // pairs with NaN or infinity that differ; in no other number
  uint64_t appeared = 0;          // of these, NaN or infinite where the exact number is finite
  double sum = 0;                 // of the exact numbers
  // -999 where NaN or infinity has appeared.
  double db() const { return appeared > 0 ? -999 : decibels(signal, noise); }
  // rounded = factor * exact + shift, as well as it can be.
  struct Line {
    double factor = 1, shift = 0;
  };
  Line line() const;
  // The exact numbers' distance from such a line, in their own measure.
  double off_line() const;
  // The noise that is left if `rounded` may be scaled.
  double fitted_noise() const;
};

struct ValueNoise {
  NoiseSums all;
  std::vector<NoiseSums> channels;    // empty: too many, or none
  std::optional<QuantParams> params;  // of the integers, if it has any
  bool rescaled = false;              // see NoiseMeter
  double db() const { return all.db(); }
  // Returns the SQNR with the best factor for each channel, so that rescaling across layers does not count.
  double fitted_db() const;
  // B holds the value times a factor of its own in every channel.
  bool scaled() const;

  int64_t levels() const;                           // integers that there are; 0: no integers
  double levels_used() const;                       // those between the ends of the exact range
  int64_t worst_channel() const;                    // -1: there are no channels
  int64_t poor_channels(double most_levels) const;  // that use fewer levels than this, but some
  double peak_over_rms() const;
  double clipped_share() const;  // of the elements
  double offset_share() const;   // of the noise: what one constant per channel would take away
};

class NoiseMeter {
 public:
  static constexpr int64_t kMostChannels = 8192;
  // `channels`: length of the last axis, 0 or more than kMostChannels: not kept apart.
  // `rescaled`: what is held is known to have a factor and a shift of its own in every channel (equalisation
  // across layers does that); noise is then the distance from the best ones.
  explicit NoiseMeter(int64_t channels, std::optional<QuantParams> params = std::nullopt,
                      bool rescaled = false);

  // Adds the numbers of a sample, as many of each.
  void add(std::span<const double> exact, std::span<const double> rounded);
  ValueNoise result() const;
  // Exact numbers as they would be held, as far as add() has seen.
  void rescale(std::vector<double>& exact) const;
  // Whether there were enough numbers to distinguish factors and shifts from noise.
  bool certain() const;

 private:
  ValueNoise noise_;
};

// "3 of 32 channels use fewer than 8 levels; clipped 2.0 %": findings, worst first; empty: none.
std::string cause_of(const ValueNoise& noise);

// The numbers that a tensor of any strides represents: integers of `params` by these, others by value; dense.
bool has_numbers(DType type);
void read_numbers(const TensorView& view, const std::optional<QuantParams>& params, std::vector<double>* out);
// The other way round, rounded where the tensor holds integers of `params`.
void write_numbers(const TensorView& view, const std::optional<QuantParams>& params,
                   const std::vector<double>& numbers);

// The name of the value that a rounded one represents: without what quantizers, this one and others, append.
// `rescaled` is set if the name shows it.
std::string exact_name(const std::string& name, bool* rescaled = nullptr);

}  // namespace sinter::convert

// Differences between two models: between arrays, with their tolerance, and of layers.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "converter/cli/layer_noise.h"

namespace sinter::convert {

// The permitted difference: by default 1e-3 of each element and 1e-5 of the largest, and none for integers.
struct Tolerance {
  std::optional<double> rtol, atol, min_sqnr;
};

// The differences between two arrays, over all samples.
struct Difference {
  double largest = 0;  // the largest absolute difference
  double peak = 0;     // the largest magnitude of the first
  double signal = 0, noise = 0;
  uint64_t finite = 0;              // pairs of finite numbers; signal and noise are sums over these
  uint64_t not_finite = 0;          // NaN or infinite in one of the two, but not the same in the other
  uint64_t not_finite_in_both = 0;  // the same infinity, or NaN twice
  uint64_t nan_in_both = 0;
  bool within = true;
  double relative() const { return peak > 0 ? largest / peak : largest; }
  // Returns nothing where no elements can be compared.
  std::optional<double> sqnr_db() const;
  // Whether all values are NaN, which equals nothing, so that agreement cannot be decided.
  bool only_nan() const { return nan_in_both > 0 && finite == 0 && nan_in_both == not_finite_in_both; }

  void add(const std::vector<double>& x, const std::vector<double>& y, DType dtype,
           const Tolerance& tolerance);
  // Decides `within` once all samples were added.
  void judge(const Tolerance& tolerance);
  // Returns the difference with null in place of infinite numbers, which JSON does not have.
  nlohmann::json to_json(const std::string& name) const;
  std::string to_text() const;
};

// Returns the layers, the noisiest first. `judged` has a difference for each row (Row::judged).
nlohmann::json layers_json(const LayerNoise& noise, const std::vector<Difference>& judged);
// Prints a table of the first layers, or of all.
void print_layers(const LayerNoise& noise, bool all);

}  // namespace sinter::convert

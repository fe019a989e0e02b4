#include "converter/quantize/weights/weight_rounding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "converter/quantize/cpu_tier.h"

namespace sinter::convert {
namespace {

constexpr double kSteps = 127;
constexpr double kNarrowest = 0.5, kNarrower = 0.98;  // of the whole range, that are tried
constexpr double kWorthWhile = 0.95;                  // of the error that must be left at most
constexpr double kPlaces = 0x1.8p52;                  // adding it leaves no place for a fraction
constexpr size_t kRoundingLanes = 8;                  // of a vector
constexpr size_t kRows = 2 * kRoundingLanes;          // that are rounded together
constexpr size_t kPanel = 8;                          // rows that are subtracted together

#define SINTER_LOOPS "converter/quantize/weights/rounding-inl.h"
#include "converter/quantize/every_tier-inl.h"

struct Loops {
  decltype(&portable::round_rows) round_rows = SINTER_BEST_LOOP(round_rows);
  decltype(&portable::subtract_rows) subtract_rows = SINTER_BEST_LOOP(subtract_rows);
  decltype(&portable::sum_losses) sum_losses = SINTER_BEST_LOOP(sum_losses);
};
const Loops& loops() {
  static const Loops best;
  return best;
}

int nearest(double v) { return static_cast<int>(std::clamp(std::nearbyint(v), -kSteps, kSteps)); }

}  // namespace

WeightRounding::WeightRounding(std::vector<double> h, int64_t n, double damping)
    : n_(static_cast<size_t>(n)), order_(n_), r_(n_ * n_, 0.0) {
  double mean = 0;
  for (size_t i = 0; i < n_; ++i) mean += std::max(h[i * n_ + i], 0.0) / static_cast<double>(n_);
  const double added = mean > 0 ? damping * mean : 1;
  for (size_t i = 0; i < n_; ++i) h[i * n_ + i] = std::max(h[i * n_ + i], 0.0) + added;
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return h[a * n_ + a] < h[b * n_ + b]; });
  // Cholesky, row by row of R: what is left of H after the rows before.
  for (size_t i = 0; i < n_; ++i)
    for (size_t j = i; j < n_; ++j) r_[i * n_ + j] = h[order_[i] * n_ + order_[j]];
  for (size_t first = 0; first < n_; first += kPanel) {
    const size_t end = std::min(n_, first + kPanel);
    for (size_t i = first; i < end; ++i) {
      double* const row = &r_[i * n_];
      const double pivot = std::sqrt(std::max(row[i], added * 1e-3));
      for (size_t j = i; j < n_; ++j) row[j] /= pivot;
      row[i] = pivot;
      for (size_t k = i + 1; k < end; ++k)
        for (size_t j = k; j < n_; ++j) r_[k * n_ + j] -= row[k] * row[j];
    }
    for (size_t k = end; k < n_; ++k) {
      double f[kPanel];
      for (size_t i = 0; i < kPanel; ++i) f[i] = r_[(first + i) * n_ + k];
      loops().subtract_rows(&r_[k * n_ + k], f, &r_[first * n_ + k], n_, n_ - k);
    }
  }
}

std::vector<int> WeightRounding::round(std::span<const double> weights, std::span<const double> steps) const {
  std::vector<int> result(weights.size(), 0);
  std::vector<double> w(n_ * kRows), q(w), left(w), plain(w);
  for (size_t first = 0; first < steps.size(); first += kRows) {
    const size_t rows = std::min(kRows, steps.size() - first);
    double step[kRows], ours[kRows], theirs[kRows];
    for (size_t row = 0; row < kRows; ++row) {
      const bool there = row < rows && steps[first + row] > 0;
      step[row] = there ? steps[first + row] : 1;
      for (size_t i = 0; i < n_; ++i)
        w[i * kRows + row] = there ? weights[(first + row) * n_ + order_[i]] : 0;
    }
    loops().round_rows(r_.data(), n_, w.data(), step, q.data(), left.data(), plain.data(), ours, theirs);
    for (size_t row = 0; row < rows; ++row) {
      int* const to = &result[(first + row) * n_];
      for (size_t i = 0; i < n_; ++i)
        to[order_[i]] = ours[row] <= theirs[row] ? static_cast<int>(q[i * kRows + row])
                                                 : nearest(w[i * kRows + row] / step[row]);
    }
  }
  return result;
}

double best_step(std::span<const double> weights, std::span<const double> importance) {
  double largest = 0;
  for (const double w : weights) largest = std::max(largest, std::fabs(w));
  const double whole = largest / kSteps;
  if (!(whole > 0) || !std::isfinite(whole)) return 0;
  std::vector<double> steps = {whole};
  for (double part = kNarrower; part > kNarrowest; part *= kNarrower) steps.push_back(part * whole);
  const size_t count = steps.size();
  steps.resize((count + kRoundingLanes - 1) / kRoundingLanes * kRoundingLanes, whole);
  std::vector<double> losses(steps.size());
  for (size_t i = 0; i < steps.size(); i += kRoundingLanes)
    loops().sum_losses(weights.data(), importance.data(), weights.size(), &steps[i], &losses[i]);
  double best = whole, least = losses[0] * kWorthWhile;
  for (size_t i = 1; i < count; ++i)
    if (losses[i] < least) least = losses[i], best = steps[i];
  return best;
}

}  // namespace sinter::convert

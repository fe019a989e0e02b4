#include "converter/quantize/weight_rounding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinter::convert {
namespace {

constexpr int kSteps = 127;
constexpr double kNarrowest = 0.5, kNarrower = 0.98;  // of the whole range, that are tried
constexpr double kWorthWhile = 0.95;                  // of the error that must be left at most

int nearest(double v) { return static_cast<int>(std::clamp<double>(std::nearbyint(v), -kSteps, kSteps)); }

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
  for (size_t i = 0; i < n_; ++i) {
    double* const row = &r_[i * n_];
    const double pivot = std::sqrt(std::max(row[i], added * 1e-3));
    for (size_t j = i; j < n_; ++j) row[j] /= pivot;
    row[i] = pivot;
    for (size_t k = i + 1; k < n_; ++k) {
      const double f = row[k];
      if (f == 0) continue;
      double* const below = &r_[k * n_];
      for (size_t j = k; j < n_; ++j) below[j] -= f * row[j];
    }
  }
}

std::vector<int> WeightRounding::round(std::span<const double> weights, double step) const {
  std::vector<int> q(n_, 0), plain(n_, 0);
  if (!(step > 0)) return q;
  std::vector<double> left(n_, 0.0);  // errors, in the order of R
  for (size_t i = n_; i-- > 0;) {
    const double* const row = &r_[i * n_];
    double made_up = 0;
    for (size_t k = i + 1; k < n_; ++k) made_up += row[k] * left[k];
    const double w = weights[order_[i]];
    q[order_[i]] = nearest((w + made_up / row[i]) / step);
    plain[order_[i]] = nearest(w / step);
    left[i] = w - q[order_[i]] * step;
  }
  return error(weights, step, q) <= error(weights, step, plain) ? q : plain;
}

double WeightRounding::error(std::span<const double> weights, double step, std::span<const int> q) const {
  std::vector<double> e(n_);
  for (size_t i = 0; i < n_; ++i) e[i] = weights[order_[i]] - q[order_[i]] * step;
  double total = 0;
  for (size_t i = 0; i < n_; ++i) {
    double sum = 0;
    for (size_t k = i; k < n_; ++k) sum += r_[i * n_ + k] * e[k];
    total += sum * sum;
  }
  return total;
}

double best_step(std::span<const double> weights, std::span<const double> importance) {
  double largest = 0;
  for (const double w : weights) largest = std::max(largest, std::fabs(w));
  const double whole = largest / kSteps;
  if (!(whole > 0) || !std::isfinite(whole)) return 0;
  const auto loss = [&](double step) {
    double total = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double e = weights[i] - nearest(weights[i] / step) * step;
      total += importance[i] * e * e;
    }
    return total;
  };
  double best = whole, least = loss(whole) * kWorthWhile;
  for (double part = kNarrower; part > kNarrowest; part *= kNarrower)
    if (const double now = loss(part * whole); now < least) least = now, best = part * whole;
  return best;
}

}  // namespace sinter::convert

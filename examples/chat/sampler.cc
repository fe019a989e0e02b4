#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

int64_t Sampler::operator()(std::span<const float> logits) {
  const auto more_likely = [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  };
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (temperature <= 0) return *std::min_element(order_.begin(), order_.end(), more_likely);
  const size_t count = top == 0 ? logits.size() : std::min(top, logits.size());
  std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count), order_.end(),
                    more_likely);
  const float largest = logits[static_cast<size_t>(order_[0])];
  weights_.clear();
  for (size_t i = 0; i < count; ++i)
    weights_.push_back(std::exp((logits[static_cast<size_t>(order_[i])] - largest) / temperature));
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  while (kept < count && (kept == 0 || sum < share * total)) sum += weights_[kept++];
  double left = std::uniform_real_distribution<double>(0, sum)(random);
  size_t chosen = 0;
  while (chosen + 1 < kept && (left -= weights_[chosen]) > 0) ++chosen;
  return order_[chosen];
}

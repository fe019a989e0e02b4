// Chooses the next token from logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

struct Sampler {
  float temperature = 0.8f;  // 0: always the most likely token
  size_t top = 40;           // only among the N most likely ones; 0: among all
  float share = 0.95f;       // only among the most likely ones that have this probability together
  std::mt19937_64 random{1};

  // The number of a logit. `logits` is not empty.
  int64_t operator()(std::span<const float> logits);

 private:
  std::vector<int64_t> order_;
  std::vector<double> weights_;
};

#include "converter/plan/winograd_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/backend/winograd.h"

namespace sinter::convert {
namespace {

constexpr int64_t kBlock = 64;     // output channels that are computed together
constexpr double kWork = 1 << 26;  // about: multiplications for all tiles
constexpr int64_t kMostTiles = 16;

// SplitMix64, as a number in (-1, 1).
class UniformNumbers {
 public:
  float operator()() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return static_cast<float>(static_cast<int64_t>((z ^ z >> 31) >> 40) - (1 << 23)) * 0x1p-23f;
  }

 private:
  uint64_t state_ = 1;
};

// Squares and maxima of the errors of two ways to compute the same outputs.
struct ErrorSums {
  double direct = 0, winograd = 0, most_direct = 0, most_winograd = 0;

  void add(double direct_error, double winograd_error) {
    direct += direct_error * direct_error, winograd += winograd_error * winograd_error;
    most_direct = std::max(most_direct, std::fabs(direct_error));
    most_winograd = std::max(most_winograd, std::fabs(winograd_error));
  }
  // 0 of 0 counts as 0.
  static double ratio(double a, double b) { return a == 0 ? 0 : a / b; }
  WinogradError over_direct() const {
    return {std::sqrt(ratio(winograd, direct)), ratio(most_winograd, most_direct)};
  }
};

template <int kPairs>
class ErrorMeasurement {
  using W = Winograd<kPairs>;
  static constexpr int kTile = W::kTile, kInputs = W::kInputs, kPositions = W::kPositions;

 public:
  ErrorMeasurement(std::span<const float> weights, int64_t outputs, int64_t channels)
      : weights_(weights), outputs_(outputs), channels_(channels) {
    const double of_tile = static_cast<double>(outputs * channels) * (18 * kTile * kTile + kPositions);
    tiles_ = std::clamp(static_cast<int64_t>(kWork / std::max(of_tile, 1.0)), int64_t{1}, kMostTiles);
    UniformNumbers random;
    inputs_.resize(static_cast<size_t>(tiles_ * kPositions * channels));
    for (float& v : inputs_) v = random();
  }

  WinogradError run() {
    for (int64_t first = 0; first < outputs_; first += kBlock) {
      take_filters(first, std::min(kBlock, outputs_ - first));
      for (int64_t t = 0; t < tiles_; ++t) measure(inputs_.data() + t * kPositions * channels_);
    }
    if (!finite_) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
    const WinogradError plain = plain_.over_direct(), scaled = scaled_.over_direct();
    return {std::max(plain.rms, scaled.rms), std::max(plain.maximum, scaled.maximum)};
  }

 private:
  // Output channels are the innermost axis of all that follows: [taps or positions, channels, kBlock].
  void take_filters(int64_t first, int64_t count) {
    count_ = count;
    direct_.assign(static_cast<size_t>(9 * channels_ * kBlock), 0);
    transformed_.assign(static_cast<size_t>(kPositions * channels_ * kBlock), 0);
    for (int64_t o = 0; o < count; ++o) {
      double squares = 0;
      for (int64_t c = 0; c < channels_; ++c) {
        double g[3][3], lines[3];
        for (int64_t tap = 0; tap < 9; ++tap) {
          const float w = weights_[static_cast<size_t>(((first + o) * 9 + tap) * channels_ + c)];
          direct_[static_cast<size_t>((tap * channels_ + c) * kBlock + o)] = w;
          g[tap / 3][tap % 3] = static_cast<double>(w);
          squares += g[tap / 3][tap % 3] * g[tap / 3][tap % 3];
        }
        for (int i = 0; i < kInputs; ++i) {
          const double* row = kWinograd<kPairs>.filter[i];
          for (int b = 0; b < 3; ++b) lines[b] = row[0] * g[0][b] + row[1] * g[1][b] + row[2] * g[2][b];
          for (int j = 0; j < kInputs; ++j) {
            const double* column = kWinograd<kPairs>.filter[j];
            transformed_[static_cast<size_t>(((i * kInputs + j) * channels_ + c) * kBlock + o)] =
                static_cast<float>(column[0] * lines[0] + column[1] * lines[1] + column[2] * lines[2]);
          }
        }
      }
      norms_[o] = std::sqrt(squares);
    }
  }

  // `d`: [kInputs, kInputs, channels].
  void measure(const float* d) {
    transform_inputs(d);
    for (int64_t i = 0; i < kPositions; ++i)
      sum(inputs_of_position_.data() + i * channels_, transformed_.data() + i * channels_ * kBlock,
          products_[i]);
    transform_products();
    for (int64_t k = 0; k < kTile * kTile; ++k) {
      float direct[kBlock] = {};
      double exact[kBlock] = {};
      for (int64_t tap = 0; tap < 9; ++tap) {
        const float* x = d + ((k / kTile + tap / 3) * kInputs + k % kTile + tap % 3) * channels_;
        const float* w = direct_.data() + tap * channels_ * kBlock;
        sum(x, w, direct), sum(x, w, exact);
      }
      for (int64_t o = 0; o < count_; ++o) {
        const double a = static_cast<double>(direct[o]) - exact[o],
                     b = static_cast<double>(results_[k][o]) - exact[o];
        finite_ = finite_ && std::isfinite(a) && std::isfinite(b);
        plain_.add(a, b);
        if (norms_[o] > 0) scaled_.add(a / norms_[o], b / norms_[o]);
      }
    }
  }

  template <class T>
  void sum(const float* x, const float* w, T* to) const {
    for (int64_t c = 0; c < channels_; ++c, w += kBlock)
      for (int64_t o = 0; o < kBlock; ++o) to[o] += static_cast<T>(x[c]) * static_cast<T>(w[o]);
  }

  void transform_inputs(const float* d) {
    inputs_of_position_.resize(static_cast<size_t>(kPositions * channels_));
    for (int64_t c = 0; c < channels_; ++c) {
      float lines[kInputs][kInputs];
      for (int i = 0; i < kInputs; ++i)
        for (int j = 0; j < kInputs; ++j) {
          lines[i][j] = 0;
          for (int k = 0; k < kInputs; ++k)
            lines[i][j] +=
                static_cast<float>(kWinograd<kPairs>.input[i][k]) * d[(k * kInputs + j) * channels_ + c];
        }
      for (int i = 0; i < kInputs; ++i)
        for (int j = 0; j < kInputs; ++j) {
          float v = 0;
          for (int k = 0; k < kInputs; ++k)
            v += static_cast<float>(kWinograd<kPairs>.input[j][k]) * lines[i][k];
          inputs_of_position_[static_cast<size_t>((i * kInputs + j) * channels_ + c)] = v;
        }
    }
    for (auto& product : products_) std::fill(std::begin(product), std::end(product), 0.0f);
  }

  void transform_products() {
    for (int64_t o = 0; o < count_; ++o)
      for (int k = 0; k < kTile; ++k) {
        float line[kInputs] = {};
        for (int j = 0; j < kInputs; ++j)
          for (int i = 0; i < kInputs; ++i)
            line[j] += static_cast<float>(kWinograd<kPairs>.output[k][i]) * products_[i * kInputs + j][o];
        for (int l = 0; l < kTile; ++l) {
          float v = 0;
          for (int j = 0; j < kInputs; ++j) v += static_cast<float>(kWinograd<kPairs>.output[l][j]) * line[j];
          results_[k * kTile + l][o] = v;
        }
      }
  }

  std::span<const float> weights_;
  int64_t outputs_, channels_, tiles_ = 0, count_ = 0;
  std::vector<float> inputs_, direct_, transformed_, inputs_of_position_;
  float products_[kPositions][kBlock] = {}, results_[kTile * kTile][kBlock] = {};
  double norms_[kBlock] = {};
  ErrorSums plain_, scaled_;
  bool finite_ = true;
};

}  // namespace

WinogradError winograd_error(std::span<const float> weights, int64_t outputs, int64_t channels,
                             int64_t tile) {
  if (tile == 2) return ErrorMeasurement<1>(weights, outputs, channels).run();
  if (tile == 4) return ErrorMeasurement<2>(weights, outputs, channels).run();
  return ErrorMeasurement<3>(weights, outputs, channels).run();
}

}  // namespace sinter::convert

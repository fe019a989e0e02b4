// Candidates are the scales that span the block, shrunk and stretched; each is refitted to the integers that
// it gives (the least squares scale for them), and rounded to the type that it is stored in before it is
// judged: the integers make up for that rounding.
#include "converter/quantize/block_codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace sinter::convert {
namespace {

float to_bfloat16(double v) {
  const auto f = static_cast<float>(v);
  const auto bits = std::bit_cast<uint32_t>(f);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

struct Choice {
  float scale = 1;
  int zero = 0;
  double error = HUGE_VAL;
};

class Block {
 public:
  Block(std::span<const float> w, int low, int high, bool half_scale)
      : w_(w), low_(low), high_(high), half_scale_(half_scale) {}

  // Judges a scale, and the one that suits its integers best.
  void consider(double scale, int zero) {
    for (int round = 0; round < 2; ++round) {
      const float s = half_scale_ ? to_bfloat16(scale) : static_cast<float>(scale);
      if (!std::isnormal(s)) return;
      double error = 0, wq = 0, qq = 0;
      for (const float w : w_) {
        const auto q = static_cast<double>(code(w, s, zero) - zero);
        const double d = static_cast<double>(w) - q * static_cast<double>(s);
        error += d * d, wq += static_cast<double>(w) * q, qq += q * q;
      }
      if (error < best_.error) best_ = {s, zero, error};
      if (qq == 0) return;
      scale = wq / qq;
    }
  }
  int code(float w, float scale, int zero) const {
    // In float: the quotient of a block's numbers is small.
    const float q = std::nearbyint(w / scale) + static_cast<float>(zero);
    return static_cast<int>(std::clamp(q, static_cast<float>(low_), static_cast<float>(high_)));
  }
  const Choice& best() const { return best_; }

 private:
  std::span<const float> w_;
  int low_, high_;
  bool half_scale_;
  Choice best_;
};

constexpr std::array kShrinks4 = {0.70, 0.76, 0.82, 0.87, 0.91, 0.95, 1.0, 1.06, 1.12};
constexpr std::array kShrinks8 = {0.85, 0.90, 0.94, 0.97, 1.0};

void search(Block& block, std::span<const float> w, int bits, bool zero_points) {
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  const double least = std::min(0.0, static_cast<double>(*low)),
               most = std::max(0.0, static_cast<double>(*high));
  if (bits == 8) {
    for (const double f : kShrinks8) block.consider(f * std::max(most, -least) / 127, 0);
  } else if (!zero_points) {
    // The larger side gets the 8 steps of the negative one.
    const double extreme = most > -least ? most : least;
    for (const double f : kShrinks4) {
      block.consider(-extreme / 8 * f, 0);
      block.consider(extreme / 7 * f, 0);
    }
  } else {
    for (const double f : kShrinks4) {
      const double step = (most - least) / 15 * f;
      const int zero = std::clamp(static_cast<int>(std::nearbyint(-least * f / step)), 0, 15);
      for (const int z : {zero - 1, zero, zero + 1})
        if (z >= 0 && z <= 15) block.consider(step, z);
    }
  }
}

}  // namespace

double BlockCodes::db() const {
  return noise == 0 ? 999 : signal == 0 ? -999 : 10 * std::log10(signal / noise);
}

BlockCodes code_blocks(std::span<const float> w, const BlockShape& shape, int bits, bool zero_points) {
  if ((bits != 4 && bits != 8) || (bits == 8 && zero_points) || shape.block < 1 ||
      w.size() != static_cast<size_t>(shape.rows * shape.columns))
    throw std::logic_error("weights cannot be coded so");
  BlockCodes codes;
  codes.q.resize(w.size());
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t k = 0; k < shape.columns; k += shape.block) {
      const auto first = static_cast<size_t>(row * shape.columns + k),
                 count = static_cast<size_t>(std::min(shape.block, shape.columns - k));
      const std::span<const float> items = w.subspan(first, count);
      Block block(items,
                  bits == 8     ? -127
                  : zero_points ? 0
                                : -8,
                  bits == 8     ? 127
                  : zero_points ? 15
                                : 7,
                  bits == 4 || shape.blocks() > 1);
      if (std::any_of(items.begin(), items.end(), [](float f) { return f != 0; }))
        search(block, items, bits, zero_points);
      const Choice& best = block.best();  // of zeros, and of what is too small to count: 1
      double error = 0;
      for (size_t i = 0; i < count; ++i) {
        const int q = block.code(items[i], best.scale, best.zero);
        codes.q[first + i] = static_cast<int8_t>(q);
        const double d = static_cast<double>(items[i]) - (q - best.zero) * static_cast<double>(best.scale);
        error += d * d, codes.signal += static_cast<double>(items[i]) * static_cast<double>(items[i]);
      }
      codes.noise += error;
      codes.scales.push_back(best.scale);
      if (zero_points) codes.zeros.push_back(static_cast<uint8_t>(best.zero));
    }
  return codes;
}

}  // namespace sinter::convert

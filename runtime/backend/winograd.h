// Winograd's convolution F(m x m, 3 x 3): a tile of m x m outputs is computed from (m + 2) x (m + 2) inputs d
// and a filter g of 3 x 3 as A^T [(G g G^T) * (B^T d B)] A, element by element: (m + 2)^2 products for each
// input and output channel instead of 9 m^2. Sums over input channels come between the product and A.
//
// Source: S. Winograd, "Arithmetic Complexity of Computations" (1980); A. Lavin, S. Gray, "Fast Algorithms
// for Convolutional Neural Networks" (2016). The matrices follow from the points at which the polynomials are
// evaluated: 0, pairs of a point and its negative, and infinity. docs/numerics.md has their errors.
#pragma once

#include <cstdint>

#include "runtime/backend/window.h"

namespace sinter {

// The values of Conv's attribute `winograd` besides 0: m, the outputs of a tile along each axis.
inline constexpr int64_t kWinogradTiles[] = {2, 4, 6};
constexpr bool is_winograd_tile(int64_t m) { return m == 2 || m == 4 || m == 6; }

// Returns whether the algorithm fits a window that inference has checked, with two spatial axes.
inline bool winograd_fits(const WindowGeometry& g) {
  bool fits = g.group == 1 && g.kernel[0] == 1;
  for (int i = 1; i < kMaxWindowAxes; ++i)
    fits = fits && g.kernel[i] == 3 && g.stride[i] == 1 && g.dilation[i] == 1;
  return fits;
}

// The points have few bits, so that every entry of A and B is exact in float32. Pairs are used from the first
// on: kPairs pairs give tiles of m = 2 kPairs.
template <int kPairs>
struct WinogradPoints;
template <>
struct WinogradPoints<1> {
  static constexpr double kAt[1] = {1};
};
template <>
struct WinogradPoints<2> {
  static constexpr double kAt[2] = {0.625, 1.5};
};
template <>
struct WinogradPoints<3> {
  static constexpr double kAt[3] = {0.5, 1, 2};
};

// The matrices: rows of B and G and columns of A are in the order 0, p0, -p0, p1, -p1, ..., infinity. The
// polynomial of the finite points is x e(x^2), e the product of (x^2 - p^2); kEnds are the coefficients of e,
// from the constant one on, and kRest[i] those of e without pair i.
template <int kPairs>
struct Winograd {
  static constexpr int kTile = 2 * kPairs, kInputs = kTile + 2, kPositions = kInputs * kInputs;

  double points[kPairs] = {};
  double ends[kPairs + 1] = {};
  double rest[kPairs][kPairs] = {};
  double filter[kInputs][3] = {};       // G
  double powers[kPairs][kTile] = {};    // powers[i][k] = p_i^k
  double input[kInputs][kInputs] = {};  // B^T
  double output[kTile][kInputs] = {};   // A^T

  constexpr Winograd() {
    multiply(-1, ends);
    for (int i = 0; i < kPairs; ++i) {
      points[i] = WinogradPoints<kPairs>::kAt[i];
      multiply(i, rest[i]);
      powers[i][0] = 1;
      for (int k = 1; k < kTile; ++k) powers[i][k] = powers[i][k - 1] * points[i];
    }
    constexpr int kLast = kInputs - 1;
    for (int k = 0; k <= kPairs; ++k) input[0][2 * k] = input[kLast][2 * k + 1] = ends[k];
    filter[0][0] = 1 / ends[0], filter[kLast][2] = 1;
    output[0][0] = output[kTile - 1][kLast] = 1;
    for (int i = 0; i < kPairs; ++i)
      for (int side = 0; side < 2; ++side) {
        const int row = 1 + 2 * i + side;
        const double p = side == 0 ? points[i] : -points[i];
        double value = 0;  // 2 p^2 times the rest at p^2: the derivative of the polynomial at p
        for (int k = kPairs - 1; k >= 0; --k) {
          input[row][2 * k + 2] = rest[i][k], input[row][2 * k + 1] = p * rest[i][k];
          value = value * p * p + rest[i][k];
        }
        value *= 2 * p * p;
        filter[row][0] = 1 / value, filter[row][1] = p / value, filter[row][2] = p * p / value;
        for (int k = 0; k < kTile; ++k)
          output[k][row] = side == 1 && k % 2 == 1 ? -powers[i][k] : powers[i][k];
      }
  }

 private:
  // Writes the coefficients of the product of (x - p^2) over all pairs except `without`.
  static constexpr void multiply(int without, double* to) {
    to[0] = 1;
    int degree = 0;
    for (int i = 0; i < kPairs; ++i) {
      if (i == without) continue;
      const double p = WinogradPoints<kPairs>::kAt[i];
      to[degree + 1] = to[degree];
      for (int k = degree; k > 0; --k) to[k] = to[k - 1] - p * p * to[k];
      to[0] *= -p * p;
      ++degree;
    }
  }
};
template <int kPairs>
inline constexpr Winograd<kPairs> kWinograd;

}  // namespace sinter

// The sums of runtime/kernels/simd32.h beside plain loops, on the core itself: extreme and random values,
// zero points of both sides, every number of rows. Ends with 1 at the first difference.
#include "examples/microcontroller/board/semihosting.h"
#include "runtime/kernels/simd32.h"

static_assert(SINTER_SIMD32 == 1, "this core does not have the instructions");

namespace {

constexpr size_t kMost = 64;
uint32_t state = 1;
int8_t any() {
  state = state * 1664525u + 1013904223u;
  const uint32_t v = state >> 24;
  return static_cast<int8_t>(v < 32 ? 127 : v < 64 ? 128 : v);
}

template <int kRows>
bool dots_agree(size_t depth) {
  int8_t x[kRows][kMost], w[kMost];
  const int8_t* rows[kRows];
  uint32_t got[kRows], want[kRows];
  const auto x_zero = static_cast<uint32_t>(any()), w_zero = static_cast<uint32_t>(any());
  for (size_t k = 0; k < depth; ++k) w[k] = any();
  for (int r = 0; r < kRows; ++r) {
    rows[r] = x[r];
    got[r] = want[r] = 0xffffff00u;  // wraps
    for (size_t k = 0; k < depth; ++k) {
      x[r][k] = any();
      want[r] += (static_cast<uint32_t>(x[r][k]) - x_zero) * (static_cast<uint32_t>(w[k]) - w_zero);
    }
  }
  sinter::simd32::add_dots<kRows>(rows, x_zero, w, w_zero, depth, got);
  for (int r = 0; r < kRows; ++r)
    if (got[r] != want[r]) return false;
  return true;
}

bool products_agree(size_t count) {
  int8_t x[kMost], w[kMost];
  uint32_t got[kMost], want[kMost];
  const auto x_zero = static_cast<uint32_t>(any());
  for (size_t c = 0; c < count; ++c) {
    x[c] = any(), w[c] = any();
    got[c] = want[c] = static_cast<uint32_t>(any()) << 24;
    want[c] += (static_cast<uint32_t>(x[c]) - x_zero) * static_cast<uint32_t>(w[c]);
  }
  sinter::simd32::add_products(x, x_zero, w, count, got);
  for (size_t c = 0; c < count; ++c)
    if (got[c] != want[c]) return false;
  return true;
}

}  // namespace

int main() {
  for (int round = 0; round < 200; ++round)
    for (size_t n = 0; n <= kMost; n += 4)
      if (!dots_agree<1>(n) || !dots_agree<4>(n) || !products_agree(n))
        return semihosting_print("simd32.h and plain loops differ\n"), 1;
  return 0;
}

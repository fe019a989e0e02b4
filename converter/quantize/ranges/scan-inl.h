// The inner loop of TensorStatistics::scan for every tier. Lanes are added up in the same order on each, so
// that the results are the same bits.

namespace SINTER_TIER {

// `values` are `blocks` blocks of `width` vectors. Folds element i of every block into lane i.
SINTER_TIER_TARGET void scan_blocks(const float* values, int64_t blocks, int64_t width, float* lowest,
                                    float* highest, float* sums) {
  typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
#define SINTER_FOLD(x, low, high, sum) low = (x) < low ? (x) : low, high = (x) > high ? (x) : high, sum += (x)
  // Four vectors of a block at a time, whose results stay in registers, down through all blocks.
  for (int64_t v = 0; v < width;) {
    const Vector* x = reinterpret_cast<const Vector*>(values) + v;
    Vector* const low = reinterpret_cast<Vector*>(lowest) + v;
    Vector* const high = reinterpret_cast<Vector*>(highest) + v;
    Vector* const sum = reinterpret_cast<Vector*>(sums) + v;
    Vector low0 = low[0], high0 = high[0], sum0 = sum[0];
    if (width - v < 4) {
      for (int64_t b = 0; b < blocks; ++b, x += width) {
        const Vector x0 = x[0];
        SINTER_FOLD(x0, low0, high0, sum0);
      }
      low[0] = low0, high[0] = high0, sum[0] = sum0;
      v += 1;
      continue;
    }
    Vector low1 = low[1], high1 = high[1], sum1 = sum[1];
    Vector low2 = low[2], high2 = high[2], sum2 = sum[2];
    Vector low3 = low[3], high3 = high[3], sum3 = sum[3];
    for (int64_t b = 0; b < blocks; ++b, x += width) {
      const Vector x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
      SINTER_FOLD(x0, low0, high0, sum0);
      SINTER_FOLD(x1, low1, high1, sum1);
      SINTER_FOLD(x2, low2, high2, sum2);
      SINTER_FOLD(x3, low3, high3, sum3);
    }
    low[0] = low0, high[0] = high0, sum[0] = sum0;
    low[1] = low1, high[1] = high1, sum[1] = sum1;
    low[2] = low2, high[2] = high2, sum[2] = sum2;
    low[3] = low3, high[3] = high3, sum[3] = sum3;
    v += 4;
  }
#undef SINTER_FOLD
}

}  // namespace SINTER_TIER

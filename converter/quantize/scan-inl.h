// The inner loop of TensorStatistics::scan, compiled once per instruction set (SINTER_SCAN_NAME,
// SINTER_SCAN_TARGET). Lanes are added up in the same order on each, so that the results are the same bits.

// `values` are `blocks` blocks of `width` vectors. Folds element i of every block into lane i.
SINTER_SCAN_TARGET void SINTER_SCAN_NAME(const float* values, int64_t blocks, int64_t width, float* lowest,
                                         float* highest, float* sums, float* squares) {
  typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t v = 0; v < width; ++v) {
      const Vector x = *reinterpret_cast<const Vector*>(values);
      values += 16;
      Vector& low = reinterpret_cast<Vector*>(lowest)[v];
      Vector& high = reinterpret_cast<Vector*>(highest)[v];
      low = x < low ? x : low;
      high = x > high ? x : high;
      reinterpret_cast<Vector*>(sums)[v] += x;
      reinterpret_cast<Vector*>(squares)[v] += x * x;
    }
  }
}

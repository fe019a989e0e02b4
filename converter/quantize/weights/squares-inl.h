// The inner loop of ProductInputs::flush for every tier: the same sums in the same order on each.

namespace SINTER_TIER {

// h += x^T x for `rows` rows of a multiple of kInputLanes, its upper half.
SINTER_TIER_TARGET void add_squares(const float* x, int64_t rows, int64_t width, float* h) {
  typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
#define SINTER_AT(p) (*reinterpret_cast<const Vector*>(p))
  for (int64_t first = 0; first + 4 <= rows; first += 4) {
    const float *const r0 = x + first * width, *const r1 = r0 + width, *const r2 = r1 + width,
                       *const r3 = r2 + width;
    for (int64_t i = 0; i < width; ++i) {
      const float a = r0[i], b = r1[i], c = r2[i], d = r3[i];
      if (a == 0 && b == 0 && c == 0 && d == 0) continue;
      for (int64_t j = i / kInputLanes * kInputLanes; j < width; j += kInputLanes)
        *reinterpret_cast<Vector*>(h + i * width + j) +=
            a * SINTER_AT(r0 + j) + b * SINTER_AT(r1 + j) + c * SINTER_AT(r2 + j) + d * SINTER_AT(r3 + j);
    }
  }
#undef SINTER_AT
}

}  // namespace SINTER_TIER

// The inner loops of weight_rounding.cc for every tier. Every lane is a row, a column or a step of its own
// and adds up in the order that the formula has, so that the results are the same bits on each.

namespace SINTER_TIER {

typedef double Vector __attribute__((vector_size(64), aligned(8), may_alias));

#define SINTER_GET(p, i) (reinterpret_cast<const Vector*>(p)[i])
#define SINTER_PUT(p, i) (reinterpret_cast<Vector*>(p)[i])
// To the nearest integer of [-kSteps, kSteps]; NaN: -kSteps.
#define SINTER_ROUND(v)                            \
  (v) = (v) > -kSteps ? (v) : (Vector{} - kSteps); \
  (v) = (v) < kSteps ? (v) : (Vector{} + kSteps);  \
  (v) = ((v) + kPlaces) - kPlaces

// kRows rows at once: `weights` [n][kRows] in the order of R, `steps` [kRows]. Gives the integers `q` that
// make up for each other, what these leave of the weights, what rounding to nearest leaves (all [n][kRows]),
// and of both the squared length of R's product with it.
SINTER_TIER_TARGET void round_rows(const double* r, size_t n, const double* weights, const double* steps,
                                   double* q, double* left, double* plain, double* ours, double* theirs) {
  const Vector step0 = SINTER_GET(steps, 0), step1 = SINTER_GET(steps, 1);
  Vector ours0 = {}, ours1 = {}, theirs0 = {}, theirs1 = {};
  for (size_t i = n; i-- > 0;) {
    const double* const row = r + i * n;
    Vector made0 = {}, made1 = {}, other0 = {}, other1 = {};
    for (size_t k = i + 1; k < n; ++k) {
      const double f = row[k];
      const double *const a = left + k * kRows, *const b = plain + k * kRows;
      made0 += f * SINTER_GET(a, 0), made1 += f * SINTER_GET(a, 1);
      other0 += f * SINTER_GET(b, 0), other1 += f * SINTER_GET(b, 1);
    }
    const double own = row[i];
    const size_t at = i * kRows;
    const Vector w0 = SINTER_GET(weights + at, 0), w1 = SINTER_GET(weights + at, 1);
    Vector q0 = (w0 + made0 / own) / step0, q1 = (w1 + made1 / own) / step1;
    SINTER_ROUND(q0);
    SINTER_ROUND(q1);
    const Vector left0 = w0 - q0 * step0, left1 = w1 - q1 * step1;
    SINTER_PUT(q + at, 0) = q0, SINTER_PUT(q + at, 1) = q1;
    SINTER_PUT(left + at, 0) = left0, SINTER_PUT(left + at, 1) = left1;
    made0 += own * left0, made1 += own * left1;
    ours0 += made0 * made0, ours1 += made1 * made1;
    q0 = w0 / step0, q1 = w1 / step1;
    SINTER_ROUND(q0);
    SINTER_ROUND(q1);
    const Vector plain0 = w0 - q0 * step0, plain1 = w1 - q1 * step1;
    SINTER_PUT(plain + at, 0) = plain0, SINTER_PUT(plain + at, 1) = plain1;
    other0 += own * plain0, other1 += own * plain1;
    theirs0 += other0 * other0, theirs1 += other1 * other1;
  }
  SINTER_PUT(ours, 0) = ours0, SINTER_PUT(ours, 1) = ours1;
  SINTER_PUT(theirs, 0) = theirs0, SINTER_PUT(theirs, 1) = theirs1;
}

// below[j] -= f[i] * rows[i * stride + j], for one i < kPanel after the other.
SINTER_TIER_TARGET void subtract_rows(double* below, const double* f, const double* rows, size_t stride,
                                      size_t size) {
  size_t j = 0;
  for (; j + kRoundingLanes <= size; j += kRoundingLanes) {
    Vector v = SINTER_GET(below + j, 0);
#pragma GCC unroll 8
    for (size_t i = 0; i < kPanel; ++i) v -= f[i] * SINTER_GET(rows + i * stride + j, 0);
    SINTER_PUT(below + j, 0) = v;
  }
  for (; j < size; ++j)
    for (size_t i = 0; i < kPanel; ++i) below[j] -= f[i] * rows[i * stride + j];
}

// The loss of each of kRoundingLanes steps.
SINTER_TIER_TARGET void sum_losses(const double* weights, const double* importance, size_t n,
                                   const double* steps, double* losses) {
  const Vector step = SINTER_GET(steps, 0);
  Vector total = {};
  for (size_t i = 0; i < n; ++i) {
    Vector q = weights[i] / step;
    SINTER_ROUND(q);
    const Vector e = weights[i] - q * step;
    total += importance[i] * e * e;
  }
  SINTER_PUT(losses, 0) = total;
}

#undef SINTER_ROUND
#undef SINTER_PUT
#undef SINTER_GET

}  // namespace SINTER_TIER

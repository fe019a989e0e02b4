// The inner loops of block_codes.cc for every tier. Every lane is a block of its own and adds up in the order
// of its weights, so that the results are the same bits on each.

namespace SINTER_TIER {

typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(64), aligned(8), may_alias));
typedef int32_t Integers __attribute__((vector_size(32), aligned(4), may_alias));

#define SINTER_FLOATS(p) (*reinterpret_cast<const Floats*>(p))
#define SINTER_DOUBLES(p) (*reinterpret_cast<const Doubles*>(p))
// The integers of the floats `w` less their zero points, as floats: quotients from `least` to `most`, to
// nearest.
#define SINTER_CODE(q, w)    \
  Floats q = (w) / scale;    \
  q = q > least ? q : least; \
  q = q < most ? q : most;   \
  q = (q + kWhole) - kWhole

// `w` holds [n][kCodeLanes], and `wide` the same in double; `scales` and `zeros` one a lane. Squared errors,
// and the sums of w * q and q * q, where q is the integer less its zero point.
SINTER_TIER_TARGET void sum_errors(const float* w, const double* wide, size_t n, const float* scales,
                                   const float* zeros, float low, float high, double* errors, double* wq,
                                   double* qq) {
  const Floats scale = SINTER_FLOATS(scales), least = low - SINTER_FLOATS(zeros),
               most = high - SINTER_FLOATS(zeros);
  const Doubles step = __builtin_convertvector(scale, Doubles);
  Doubles error = {}, cross = {}, square = {};
  for (size_t first = 0; first < n; first += kExactSquares) {
    const size_t end = first + kExactSquares < n ? first + kExactSquares : n;
    Floats squares = {};  // whole numbers below 2^24
    for (size_t i = first; i < end; ++i) {
      SINTER_CODE(code, SINTER_FLOATS(w + i * kCodeLanes));
      squares += code * code;
      const Doubles x = SINTER_DOUBLES(wide + i * kCodeLanes), q = __builtin_convertvector(code, Doubles);
      const Doubles d = x - q * step;
      error += d * d, cross += x * q;
    }
    square += __builtin_convertvector(squares, Doubles);
  }
  *reinterpret_cast<Doubles*>(errors) = error;
  *reinterpret_cast<Doubles*>(wq) = cross;
  *reinterpret_cast<Doubles*>(qq) = square;
}

// The integers, [n][kCodeLanes].
SINTER_TIER_TARGET void write_codes(const float* w, size_t n, const float* scales, const float* zeros,
                                    float low, float high, int32_t* codes) {
  const Floats scale = SINTER_FLOATS(scales), zero = SINTER_FLOATS(zeros), least = low - zero,
               most = high - zero;
  for (size_t i = 0; i < n; ++i) {
    SINTER_CODE(code, SINTER_FLOATS(w + i * kCodeLanes));
    const Floats moved = code + zero;
    *reinterpret_cast<Integers*>(codes + i * kCodeLanes) = __builtin_convertvector(moved, Integers);
  }
}

// The smallest and the largest of each lane, 0 among them.
SINTER_TIER_TARGET void find_ends(const float* w, size_t n, float* lows, float* highs) {
  Floats low = {}, high = {};
  for (size_t i = 0; i < n; ++i) {
    const Floats item = SINTER_FLOATS(w + i * kCodeLanes);
    low = item < low ? item : low;
    high = item > high ? item : high;
  }
  *reinterpret_cast<Floats*>(lows) = low;
  *reinterpret_cast<Floats*>(highs) = high;
}

#undef SINTER_CODE
#undef SINTER_DOUBLES
#undef SINTER_FLOATS

}  // namespace SINTER_TIER

// Dft: radix-2 transforms of Cooley and Tukey, An Algorithm for the Machine Calculation of Complex Fourier
// Series (1965), in double. Other lengths are convolutions with a chirp: Bluestein, A Linear Filtering
// Approach to the Computation of Discrete Fourier Transform (1970).
//
// Points that fit stay in shared memory. More points are in global memory: their first stages combine points
// of one block, and each of the others is a launch.
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/reduce/dft.h"

namespace sinter::cuda {
namespace {

SINTER_DEVICE Complex product(const Complex& a, const Complex& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
SINTER_DEVICE Complex conjugate(const Complex& a) { return {a.re, -a.im}; }

// Returns the place of point k where stages begin: its bits in reverse.
SINTER_DEVICE int reversed(int k, int bits) {
  auto r = static_cast<uint32_t>(k);
  r = (r >> 1 & 0x55555555u) | (r & 0x55555555u) << 1;
  r = (r >> 2 & 0x33333333u) | (r & 0x33333333u) << 2;
  r = (r >> 4 & 0x0f0f0f0fu) | (r & 0x0f0f0f0fu) << 4;
  r = (r >> 8 & 0x00ff00ffu) | (r & 0x00ff00ffu) << 8;
  r = r >> 16 | r << 16;
  return bits == 0 ? 0 : static_cast<int>(r >> (32 - bits));
}

SINTER_DEVICE double load_double(const std::byte* p, DType t) {
  return t == DType::kFloat64 ? load_one<double>(p) : static_cast<double>(load_float<float>(p, t));
}
SINTER_DEVICE void store_double(std::byte* p, DType t, double v) {
  if (t == DType::kFloat64)
    *reinterpret_cast<double*>(p) = v;
  else
    store_float<float>(p, t, static_cast<float>(v));
}

// Returns the element before the first along a line's axis, of an operand with `along` elements there.
SINTER_DEVICE int64_t begin_of(const DftArguments& a, uint32_t line, int along) {
  uint32_t within;
  const uint32_t outer = a.inner.divide(a.first + line, &within);
  return int64_t{outer} * along * a.inner.divisor + within;
}

// Returns point k of the transform of a line; the inverse transform is that of the conjugate.
SINTER_DEVICE Complex point_of(const DftArguments& a, uint32_t line, int k) {
  if (k >= a.n) return {0, 0};
  // The other half of a real signal's spectrum is the mirror image.
  const bool mirrored = a.real_output != 0 && 2 * int64_t{k} > a.n;
  const int from = mirrored ? a.n - k : k;
  Complex v = {0, 0};
  if (from < a.bins) {
    const auto width = static_cast<int64_t>(byte_width(a.dtype));
    const std::byte* x = a.x + (begin_of(a, line, a.in) + int64_t{from} * a.inner.divisor) * a.parts * width;
    v.re = load_double(x, a.dtype);
    if (a.parts == 2) v.im = load_double(x + width, a.dtype);
  }
  if (a.real_output != 0 && (k == 0 || 2 * int64_t{k} == a.n)) v.im = 0;
  if (mirrored != (a.inverse != 0)) v.im = -v.im;
  return a.chirp != nullptr ? product(v, a.chirp[k]) : v;
}

// Stores the result for point k of a line.
SINTER_DEVICE void store_point(const DftArguments& a, uint32_t line, int k, Complex v) {
  if (a.chirp != nullptr) v = product(conjugate(v), a.chirp[k]);
  const double scale = a.inverse != 0 ? 1 / static_cast<double>(a.n) : 1.0;
  const auto width = static_cast<int64_t>(byte_width(a.dtype));
  std::byte* y = a.y + (begin_of(a, line, a.out) + int64_t{k} * a.inner.divisor) * a.out_parts * width;
  store_double(y, a.dtype, v.re * scale);
  if (a.out_parts == 2) store_double(y + width, a.dtype, v.im * (a.inverse != 0 ? -scale : scale));
}

// Combines points `at` and `at` + half, the `k`-th pair of its kind. Room is Complex*, or in shared memory.
SINTER_DEVICE void combine(const DftArguments& a, int half, int k, Complex* p, Complex* q) {
  const Complex b = product(*q, a.twiddles[k * (a.m / (2 * half))]);
  *q = {p->re - b.re, p->im - b.im};
  *p = {p->re + b.re, p->im + b.im};
}

// Runs the stages up to pairs `last` apart, of `points` points in shared memory.
SINTER_DEVICE void run_stages(const DftArguments& a, const Shared<Complex>& v, int points, int last) {
  for (int half = 1; half <= last; half *= 2) {
    barrier();
    for (int i = thread_index(); i < points / 2; i += block_threads()) {
      const int k = i & (half - 1), at = 2 * (i - k) + k;
      Complex p = v.load<Complex>(at), q = v.load<Complex>(at + half);
      combine(a, half, k, &p, &q);
      v.store(at, p), v.store(at + half, q);
    }
  }
  barrier();
}

// Returns the input of the second transform in the convolution with the chirp.
SINTER_DEVICE Complex filtered(const DftArguments& a, int k, const Complex& v) {
  return conjugate(product(v, a.filter[k]));
}

}  // namespace

// A block has `lines_each` lines.
SINTER_KERNEL(dft_lines, DftArguments) {
  const int each = static_cast<int>(a.lines_each), points = each * a.m;
  const Shared<Complex> v = shared_memory<Complex>(0, points);
  for (int64_t first = int64_t{block_x()} * each; first < a.lines; first += int64_t{blocks_x()} * each) {
    const auto line_of = [&](int i) { return static_cast<uint32_t>(first + (i >> a.log_m)); };
    for (int i = thread_index(); i < points; i += block_threads()) {
      const int k = i & (a.m - 1);
      const Complex p = line_of(i) < a.lines ? point_of(a, line_of(i), k) : Complex{0, 0};
      v.store(i - k + reversed(k, a.log_m), p);
    }
    run_stages(a, v, points, a.m / 2);
    if (a.chirp != nullptr) {
      for (int i = thread_index(); i < points; i += block_threads()) {
        const int k = i & (a.m - 1), r = reversed(k, a.log_m);
        if (k > r) continue;
        const Complex p = filtered(a, k, v.load<Complex>(i));
        if (k < r) {
          v.store(i, filtered(a, r, v.load<Complex>(i - k + r)));
          v.store(i - k + r, p);
        } else {
          v.store(i, p);
        }
      }
      run_stages(a, v, points, a.m / 2);
    }
    for (int i = thread_index(); i < points; i += block_threads()) {
      const int k = i & (a.m - 1);
      if (k < a.out && line_of(i) < a.lines) store_point(a, line_of(i), k, v.load<Complex>(i));
    }
    barrier();
  }
}

// ---- points in global memory

SINTER_KERNEL(dft_load, DftArguments) {
  const int64_t all = int64_t{a.lines} << a.log_m;
  for (int64_t i = global_thread(); i < all; i += global_threads()) {
    const auto k = static_cast<int>(i & (a.m - 1));
    a.points[i - k + reversed(k, a.log_m)] = point_of(a, static_cast<uint32_t>(i >> a.log_m), k);
  }
}

// Runs the stages within kDftPoints neighbouring points.
SINTER_KERNEL(dft_first_stages, DftArguments) {
  const Shared<Complex> v = shared_memory<Complex>(0, kDftPoints);
  const int64_t all = int64_t{a.lines} << a.log_m;
  for (int64_t first = int64_t{block_x()} * kDftPoints; first < all;
       first += int64_t{blocks_x()} * kDftPoints) {
    for (int i = thread_index(); i < kDftPoints; i += block_threads()) v.store(i, a.points[first + i]);
    run_stages(a, v, kDftPoints, kDftPoints / 2);
    for (int i = thread_index(); i < kDftPoints; i += block_threads())
      a.points[first + i] = v.load<Complex>(i);
    barrier();
  }
}

SINTER_KERNEL(dft_stage, DftArguments) {
  const int64_t pairs = int64_t{a.lines} << (a.log_m - 1);
  for (int64_t i = global_thread(); i < pairs; i += global_threads()) {
    const auto k = static_cast<int>(i & (a.half - 1));
    Complex* p = a.points + 2 * (i - k) + k;
    combine(a, a.half, k, p, p + a.half);
  }
}

// This goes from `points` to `other`.
SINTER_KERNEL(dft_filter, DftArguments) {
  const int64_t all = int64_t{a.lines} << a.log_m;
  for (int64_t i = global_thread(); i < all; i += global_threads()) {
    const auto k = static_cast<int>(i & (a.m - 1));
    a.other[i - k + reversed(k, a.log_m)] = filtered(a, k, a.points[i]);
  }
}

SINTER_KERNEL(dft_store, DftArguments) {
  const int64_t all = int64_t{a.lines} * a.out;
  for (int64_t i = global_thread(); i < all; i += global_threads()) {
    const int64_t line = i / a.out;
    const auto k = static_cast<int>(i - line * a.out);
    store_point(a, static_cast<uint32_t>(line), k, a.points[(line << a.log_m) + k]);
  }
}

}  // namespace sinter::cuda

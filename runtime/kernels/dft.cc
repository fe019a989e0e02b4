// Dft: radix-2 transforms for powers of two; any other length becomes a convolution with a chirp (Bluestein),
// made by radix-2 transforms of at least twice the length. Everything is in double, tables included; results
// are rounded once.
#include <cmath>

#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 28;
constexpr double kPi = 3.14159265358979323846;

struct Complex {
  double re = 0, im = 0;
};
inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex conj(Complex a) { return {a.re, -a.im}; }

struct DftPlan {
  int64_t n = 0;     // length of the transform
  int64_t m = 0;     // the length of the radix-2 transforms beneath: n, or the first power of two >= 2 n - 1
  int64_t bins = 0;  // input elements that are read along the axis
  bool bluestein() const { return m != n; }
  // The complex numbers that all threads share, twiddles, then chirp and its transform; and those of a
  // thread.
  int64_t shared() const { return m / 2 + 1 + (bluestein() ? n + m : 0); }
};

bool real_output(const DftAttrs& a) { return a.inverse != 0 && a.onesided != 0; }

DftPlan dft_plan(const OpCall& call) {
  const auto& a = call.attrs<DftAttrs>();
  const int64_t in = call.in(0).dims[a.axis];
  DftPlan p;
  p.n = a.length != 0 ? a.length : real_output(a) ? 2 * (in - 1) : in;
  p.m = 1;
  while (p.m < p.n) p.m *= 2;
  if (p.m != p.n) p.m *= 2;
  p.bins = std::min(in, real_output(a) ? p.n / 2 + 1 : p.n);
  return p;
}

Status infer_dft(OpCall& call) {
  const auto& a = call.attrs<DftAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_code(a.inverse, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.onesided, 2));
  SINTER_RETURN_UNLESS(x.rank >= 2, invalid("a signal must have at least two axes, not %a", x.rank));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank - 1));
  const int64_t parts = x.dims[x.rank - 1], in = x.dims[a.axis];
  SINTER_RETURN_UNLESS(parts == 1 || parts == 2,
                       invalid("the last axis holds one or two parts, not %a", parts));
  if (a.onesided != 0)
    SINTER_RETURN_UNLESS(parts == (a.inverse != 0 ? 2 : 1),
                         invalid("a one-sided transform reads real signals, its inverse complex ones"));
  SINTER_RETURN_UNLESS(in <= kMaxLength && a.length >= 0 && a.length <= kMaxLength,
                       unsupported("a transform of length %a is too long", std::max(in, a.length)));
  const DftPlan p = dft_plan(call);
  SINTER_RETURN_UNLESS(p.n >= 1, invalid("the transform's length %a is not positive", p.n));
  Dims dims(x.shape());
  dims.d[a.axis] = a.onesided != 0 && a.inverse == 0 ? p.n / 2 + 1 : p.n;
  dims.d[x.rank - 1] = real_output(a) ? 1 : 2;
  return give_output(call, 0, x.dtype, dims.span());
}

Status dft_workspace(const OpCall& call, int threads, size_t* bytes) {
  const DftPlan p = dft_plan(call);
  const auto count =
      static_cast<size_t>(p.shared()) + static_cast<size_t>(p.m) * static_cast<size_t>(std::max(threads, 1));
  *bytes = count * sizeof(Complex);
  return ok_status();
}

// Transforms in place, forward; m is a power of two and twiddles[k] = exp(-2 pi i k / m).
void radix2(Complex* v, int64_t m, const Complex* twiddles) {
  for (int64_t i = 1, j = 0; i < m; ++i) {
    int64_t bit = m >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(v[i], v[j]);
  }
  for (int64_t half = 1; half < m; half *= 2) {
    const int64_t step = m / (2 * half);
    for (int64_t start = 0; start < m; start += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const Complex a = v[start + k], b = v[start + k + half] * twiddles[k * step];
        v[start + k] = a + b;
        v[start + k + half] = a - b;
      }
    }
  }
}

Complex unit(int64_t numerator, int64_t denominator) {  // exp(-2 pi i numerator / denominator)
  const double angle = 2 * kPi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), -std::sin(angle)};
}

struct Tables {
  Complex *twiddles, *chirp, *filter;
};

// chirp[k] = exp(-pi i k^2 / n); filter is the transform of its conjugate, wrapped around, divided by m.
void fill(const DftPlan& p, const Tables& t) {
  for (int64_t k = 0; k <= p.m / 2; ++k) t.twiddles[k] = unit(k, p.m);
  if (!p.bluestein()) return;
  for (int64_t k = 0; k < p.n; ++k) t.chirp[k] = unit(k * k % (2 * p.n), 2 * p.n);
  for (int64_t k = 0; k < p.m; ++k) t.filter[k] = {};
  const double scale = 1 / static_cast<double>(p.m);
  for (int64_t k = 0; k < p.n; ++k) {
    const Complex c = {t.chirp[k].re * scale, -t.chirp[k].im * scale};
    t.filter[k] = c;
    if (k > 0) t.filter[p.m - k] = c;
  }
  radix2(t.filter, p.m, t.twiddles);
}

// Computes the forward transform of v[0 .. n - 1] in place; v holds m numbers.
void transform(const DftPlan& p, const Tables& t, Complex* v) {
  if (!p.bluestein()) return radix2(v, p.m, t.twiddles);
  for (int64_t k = 0; k < p.n; ++k) v[k] = v[k] * t.chirp[k];
  for (int64_t k = p.n; k < p.m; ++k) v[k] = {};
  radix2(v, p.m, t.twiddles);
  // The inverse transform is the conjugate of the forward transform of the conjugate.
  for (int64_t k = 0; k < p.m; ++k) v[k] = conj(v[k] * t.filter[k]);
  radix2(v, p.m, t.twiddles);
  for (int64_t k = 0; k < p.n; ++k) v[k] = conj(v[k]) * t.chirp[k];
}

template <class T>
void dft(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<DftAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  const DftPlan p = dft_plan(call);
  const int last = x.rank - 1;
  const int64_t parts = x.dims[last], out_parts = y.dims[last], out = y.dims[a.axis], in = x.dims[a.axis];
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < a.axis; ++i) outer *= x.dims[i];
  for (int64_t i = a.axis + 1; i < last; ++i) inner *= x.dims[i];
  auto* memory = reinterpret_cast<Complex*>(context.workspace.data());
  const Tables tables = {memory, memory + p.m / 2 + 1, memory + p.m / 2 + 1 + p.n};
  const auto available = static_cast<int64_t>(context.workspace.size() / sizeof(Complex));
  if (outer * inner == 0 || available < p.shared() + p.m) return;
  fill(p, tables);

  const auto line = [&](int64_t index, Complex* v) {
    const T* from = x.as<T>() + (index / inner * in * inner + index % inner) * parts;
    T* to = y.as<T>() + (index / inner * out * inner + index % inner) * out_parts;
    for (int64_t k = 0; k < p.n; ++k) {
      v[k] = {};
      if (k >= p.bins) continue;
      const T* at = from + k * inner * parts;
      v[k] = {static_cast<double>(at[0]), parts == 2 ? static_cast<double>(at[1]) : 0.0};
    }
    if (real_output(a)) {  // the other half of the spectrum is the mirror image
      v[0].im = 0;
      for (int64_t k = 1; 2 * k < p.n; ++k) v[p.n - k] = conj(v[k]);
      if (p.n % 2 == 0) v[p.n / 2].im = 0;
    }
    if (a.inverse != 0)
      for (int64_t k = 0; k < p.n; ++k) v[k] = conj(v[k]);
    transform(p, tables, v);
    const double scale = a.inverse != 0 ? 1 / static_cast<double>(p.n) : 1.0;
    const double im_scale = a.inverse != 0 ? -scale : scale;
    for (int64_t k = 0; k < out; ++k) {
      T* at = to + k * inner * out_parts;
      at[0] = static_cast<T>(v[k].re * scale);
      if (out_parts == 2) at[1] = static_cast<T>(v[k].im * im_scale);
    }
  };
  const int64_t lines = outer * inner;
  const int64_t threads = threads_of(context.threads);
  const int64_t slots = std::min(lines, std::clamp<int64_t>(threads, 1, (available - p.shared()) / p.m));
  parallel_slots(context.threads, slots, lines, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) line(i, memory + p.shared() + slot * p.m);
  });
}

Status run_dft(const OpCall& call, RunContext& context) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    dft<typename decltype(tag)::type>(call, context);
    return ok_status();
  });
}

}  // namespace

const Kernel kDftKernel = reference_kernel({Op::kDft, infer_dft, dft_workspace, run_dft});

}  // namespace sinter

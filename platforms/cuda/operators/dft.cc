// Dft.
#include <algorithm>
#include <cmath>
#include <utility>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kMostPoints = 1 << 20;    // of a transform
constexpr int64_t kMostTogether = 1 << 20;  // points in global memory at a time
constexpr int kMostLaunches = 2000;

struct DftPlan {
  int64_t in = 0, n = 0;  // elements along the axis, length of the transform
  int64_t m = 1;  // the length of the radix-2 transforms: n, or the first power of two from 2 n - 1 on
  int log_m = 0;
  bool real_output = false;
  bool has_chirp() const { return m != n; }
  int64_t table() const { return m / 2 + (has_chirp() ? n + m : 0); }
};

DftPlan plan_of(const OpCall& call) {
  const auto& attrs = call.attrs<DftAttrs>();
  DftPlan p;
  p.in = call.in(0).dims[attrs.axis];
  p.real_output = attrs.inverse != 0 && attrs.onesided != 0;
  p.n = attrs.length != 0 ? attrs.length : p.real_output ? 2 * (p.in - 1) : p.in;
  while (p.m < p.n) p.m *= 2, ++p.log_m;
  if (p.m != p.n) p.m *= 2, ++p.log_m;
  return p;
}

Complex unit(int64_t numerator, int64_t denominator) {  // exp(-2 pi i numerator / denominator)
  const double angle = 2 * kPi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), -std::sin(angle)};
}

// Transforms m points in place, forward.
void transform(Complex* v, int64_t m, const Complex* twiddles) {
  for (int64_t i = 1, j = 0; i < m; ++i) {
    int64_t bit = m / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(v[i], v[j]);
  }
  for (int64_t half = 1; half < m; half *= 2)
    for (int64_t i = 0; i < m / 2; ++i) {
      const int64_t k = i % half;
      Complex &p = v[2 * (i - k) + k], &q = v[2 * (i - k) + k + half];
      const Complex t = twiddles[k * (m / (2 * half))];
      const Complex b = {q.re * t.re - q.im * t.im, q.re * t.im + q.im * t.re};
      q = {p.re - b.re, p.im - b.im};
      p = {p.re + b.re, p.im + b.im};
    }
}

// Writes twiddles, chirp and filter, as DftArguments has them.
void fill_tables(const OpCall& call, std::span<std::byte> to) {
  const DftPlan p = plan_of(call);
  auto* twiddles = reinterpret_cast<Complex*>(to.data());
  for (int64_t k = 0; k < p.m / 2; ++k) twiddles[k] = unit(k, p.m);
  if (!p.has_chirp()) return;
  Complex *chirp = twiddles + p.m / 2, *filter = chirp + p.n;
  for (int64_t k = 0; k < p.n; ++k) chirp[k] = unit(k * k % (2 * p.n), 2 * p.n);
  for (int64_t k = 0; k < p.m; ++k) filter[k] = {0, 0};
  const double scale = 1 / static_cast<double>(p.m);
  for (int64_t k = 0; k < p.n; ++k) {
    const Complex c = {chirp[k].re * scale, -chirp[k].im * scale};
    filter[k] = c;
    if (k > 0) filter[p.m - k] = c;
  }
  transform(filter, p.m, twiddles);
}

// Adds the stages for the points in global memory.
Status add_stages(Lowering& l, DftArguments& a) {
  const int64_t points = int64_t{a.lines} * a.m;
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_dft_first_stages>(
      {.blocks = {blocks_for(points, kDftPoints)}, .shared_bytes = kDftPoints * sizeof(Complex)}, a));
  for (a.half = kDftPoints; a.half < a.m; a.half *= 2)
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_dft_stage>({.blocks = {blocks_for(points / 2, 256)}}, a));
  return ok_status();
}

Status add_long(Lowering& l, DftArguments& a, int64_t lines) {
  const int64_t together = std::min(lines, std::max<int64_t>(1, kMostTogether / a.m));
  const size_t bytes = static_cast<size_t>(together * a.m) * sizeof(Complex);
  const int64_t launches = (lines + together - 1) / together * 2 * (a.log_m + 3);
  SINTER_RETURN_UNLESS(launches <= kMostLaunches, unsupported("there are too many long lines"));
  Complex* const points = reinterpret_cast<Complex*>(l.workspace(bytes));
  Complex* const other = a.n != a.m ? reinterpret_cast<Complex*>(l.workspace(bytes)) : nullptr;
  for (int64_t first = 0; first < lines; first += together) {
    a.first = static_cast<uint32_t>(first),
    a.lines = static_cast<uint32_t>(std::min(together, lines - first));
    a.points = points, a.other = other;
    const LaunchShape shape = {.blocks = {blocks_for(int64_t{a.lines} * a.m, 256)}};
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_dft_load>(shape, a));
    SINTER_RETURN_IF_ERROR(add_stages(l, a));
    if (a.n != a.m) {
      SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_dft_filter>(shape, a));
      std::swap(a.points, a.other);
      SINTER_RETURN_IF_ERROR(add_stages(l, a));
    }
    SINTER_RETURN_IF_ERROR(
        l.launch<Kernel::k_dft_store>({.blocks = {blocks_for(int64_t{a.lines} * a.out, 256)}}, a));
  }
  return ok_status();
}

}  // namespace

Status lower_Dft(Lowering& l) {
  const auto& attrs = l.attrs<DftAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0);
  const DftPlan p = plan_of(l.call());
  SINTER_RETURN_UNLESS(l.call().in(0).dense() && y.dense(), unsupported("an operand is not dense"));
  SINTER_RETURN_UNLESS(p.m <= kMostPoints && p.in <= INT32_MAX,
                       unsupported("a transform of length %a is too long", p.n));
  DftArguments a;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < attrs.axis; ++i) outer *= x.dims[i];
  for (int i = static_cast<int>(attrs.axis) + 1; i < x.rank - 1; ++i) inner *= x.dims[i];
  if (outer * inner == 0) return ok_status();
  SINTER_RETURN_UNLESS(outer * inner <= INT32_MAX, unsupported("there are 2^31 lines or more"));
  a.x = x.data, a.y = y.data, a.dtype = x.dtype;
  const auto* tables = reinterpret_cast<const Complex*>(
      l.packed(static_cast<size_t>(std::max<int64_t>(p.table(), 1)) * sizeof(Complex), fill_tables));
  a.twiddles = tables;
  a.n = static_cast<int32_t>(p.n), a.m = static_cast<int32_t>(p.m), a.log_m = p.log_m;
  if (p.has_chirp() && tables != nullptr) a.chirp = tables + p.m / 2, a.filter = a.chirp + p.n;
  a.in = static_cast<int32_t>(p.in), a.out = static_cast<int32_t>(y.dims[attrs.axis]);
  a.bins = static_cast<int32_t>(std::min(p.in, p.real_output ? p.n / 2 + 1 : p.n));
  a.parts = static_cast<int32_t>(x.dims[x.rank - 1]), a.out_parts = static_cast<int32_t>(y.dims[x.rank - 1]);
  a.inner = Divider(inner);
  a.inverse = attrs.inverse != 0 ? 1 : 0, a.real_output = p.real_output ? 1 : 0;
  if (p.m > kDftPoints) return add_long(l, a, outer * inner);
  // A block has enough lines for its threads.
  constexpr int64_t kPointsEach = 512;
  a.lines = static_cast<uint32_t>(outer * inner);
  a.lines_each = static_cast<uint32_t>(std::max<int64_t>(1, std::min<int64_t>(a.lines, kPointsEach / p.m)));
  return l.launch<Kernel::k_dft_lines>(
      {.blocks = {blocks_for(a.lines, static_cast<int>(a.lines_each))},
       .shared_bytes = a.lines_each * static_cast<uint32_t>(p.m * static_cast<int64_t>(sizeof(Complex)))},
      a);
}

}  // namespace sinter::cuda

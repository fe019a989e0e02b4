// Rope: a row of x at a time, by a row of cosines and of sines.
#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/attention/rope.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_PLATFORMS_SIMD_ROPE_ROW_
#define SINTER_PLATFORMS_SIMD_ROPE_ROW_
namespace sinter::simd {

struct RopeRow {
  const float *x, *cos, *sin;  // `half` cosines and sines
  float* y;
  size_t half, size;  // pairs that turn; elements of the row
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

HWY_INLINE void turn(V a, V b, V c, V s, V* first, V* second) {
  *first = hn::Sub(hn::Mul(c, a), hn::Mul(s, b));
  *second = hn::Add(hn::Mul(s, a), hn::Mul(c, b));
}

void run_rope_row(const RopeRow& row, bool interleaved) {
  const F d;
  const size_t lanes = hn::Lanes(d), half = row.half;
  size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const V c = hn::LoadU(d, row.cos + i), s = hn::LoadU(d, row.sin + i);
    V a, b, first, second;
    if (interleaved) {
      hn::LoadInterleaved2(d, row.x + 2 * i, a, b);
      turn(a, b, c, s, &first, &second);
      hn::StoreInterleaved2(first, second, d, row.y + 2 * i);
    } else {
      turn(hn::LoadU(d, row.x + i), hn::LoadU(d, row.x + half + i), c, s, &first, &second);
      hn::StoreU(first, d, row.y + i), hn::StoreU(second, d, row.y + half + i);
    }
  }
  for (; i < half; ++i) {
    const size_t at = interleaved ? 2 * i : i, other = interleaved ? at + 1 : i + half;
    const float a = row.x[at], b = row.x[other];
    row.y[at] = row.cos[i] * a - row.sin[i] * b;
    row.y[other] = row.sin[i] * a + row.cos[i] * b;
  }
  for (i = 2 * half; i < row.size; ++i) row.y[i] = row.x[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(run_rope_row);

int64_t turned(const OpCall& call) {
  const int64_t given = call.attrs<RopeAttrs>().rotary_dim;
  return given == 0 ? call.in(0).dims[call.in(0).rank - 1] : given;
}

Status accept_rope(const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_float_dense(call));
  for (size_t i = 1; i < 3; ++i) {
    const TensorView& v = call.in(i);
    SINTER_RETURN_IF_ERROR(check_float_dense(v));
    SINTER_RETURN_UNLESS(v.rank > 0 && 2 * v.dims[v.rank - 1] == turned(call),
                         unsupported("cosines and sines are not given for every pair"));
  }
  return ok_status();
}

// Returns the operand's row for row `line` of x.
const float* row_of(const TensorView& v, const TensorView& x, int64_t line) {
  int64_t at = 0;
  for (int axis = x.rank - 2, own = v.rank - 2; own >= 0; --axis, --own) {
    const int64_t index = line % x.dims[axis];
    line /= x.dims[axis];
    if (v.dims[own] != 1) at += index * v.strides[own] / static_cast<int64_t>(sizeof(float));
  }
  return v.as<const float>() + at;
}

Status run_rope(const OpCall& call, RunContext& context) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (x.size() == 0) return ok_status();
  const int64_t size = x.dims[x.rank - 1];
  const bool interleaved = call.attrs<RopeAttrs>().interleaved != 0;
  const auto half = static_cast<size_t>(turned(call) / 2);
  const auto run = HWY_DYNAMIC_POINTER(run_rope_row);
  parallel_for(
      context.threads, x.size() / size, std::max<int64_t>(8192 / size, 1), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line)
          run({x.as<const float>() + line * size, row_of(call.in(1), x, line), row_of(call.in(2), x, line),
               y.as<float>() + line * size, half, static_cast<size_t>(size)},
              interleaved);
      });
  return ok_status();
}

}  // namespace

const Kernel kRopeKernel = {Op::kRope, nullptr, nullptr, run_rope, accept_rope};

}  // namespace sinter::simd
#endif  // HWY_ONCE

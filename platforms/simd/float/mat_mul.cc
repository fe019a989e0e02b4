// MatMul and FullyConnected on the product of gemm.h.
#include "platforms/simd/broadcast.h"
#include "platforms/simd/float/gemm_unpacked.h"
#include "platforms/simd/variant.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::simd {
namespace {

// The rows up to which packing a computed b costs more than it gains.
constexpr int64_t kTooFewToPack = 4;

Status workspace_of(int64_t columns, int64_t depth, int64_t extra, int64_t copies, size_t* bytes) {
  int64_t n = 0;
  SINTER_RETURN_UNLESS(packed_floats(columns, depth, &n) && checked_add(n, extra, &n) &&
                           checked_mul(n, copies, &n) && checked_mul<int64_t>(n, sizeof(float), &n),
                       too_much_workspace());
  *bytes = static_cast<size_t>(n);
  return ok_status();
}

// ---- FullyConnected

struct Connected {
  int64_t rows = 1, depth = 0, columns = 0;
  int64_t x_step = 0, y_step = 0;  // from row to row
};
Connected connected(const OpCall& call) {
  const TensorView& x = call.in(0);
  Connected c;
  for (int i = 0; i + 1 < x.rank; ++i) c.rows *= x.dims[i];
  c.depth = x.dims[x.rank - 1], c.columns = call.in(1).dims[0];
  (void)x.evenly_spaced(&c.x_step);
  (void)call.out(0).evenly_spaced(&c.y_step);
  return c;
}

UnpackedWeights unpacked_weights(const OpCall& call) {
  const TensorView& w = call.in(1);
  return {w.data, w.dtype, w.dims[0], w.dims[1]};
}

// Weights may be narrower than x.
Status accept_connected(const OpCall& call) {
  TensorView like_x[3];
  for (size_t i = 0; i < call.inputs.size(); ++i) like_x[i] = call.in(i);
  if (is_narrow_weight(call.in(1).dtype)) {
    SINTER_RETURN_UNLESS(call.in(1).dense(), unsupported("the simd kernel takes dense weights"));
    like_x[1] = {};
  }
  return accept_float_pixels({call.op, call.attributes, {like_x, call.inputs.size()}, call.outputs});
}

Status connected_workspace(const OpCall& call, int threads, size_t* bytes) {
  const Connected c = connected(call);
  if (reads_unpacked(call)) {
    SINTER_RETURN_UNLESS(unpacked_workspace(c.rows, threads, bytes), too_much_workspace());
    return ok_status();
  }
  if (c.rows <= 1) return *bytes = 0, ok_status();
  return workspace_of(c.columns, c.depth, 0, 1, bytes);
}

// Returns the product without its weights.
Gemm product_of(const OpCall& call, const Connected& c) {
  const auto& attrs = call.attrs<FullyConnectedAttrs>();
  Gemm g;
  g.a = call.in(0).as<const float>(), g.a_stride = c.x_step;
  g.rows = c.rows, g.columns = c.columns, g.depth = c.depth;
  g.bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  g.y = call.out(0).as<float>(), g.y_stride = c.y_step;
  g.min = static_cast<float>(attrs.act_min), g.max = static_cast<float>(attrs.act_max);
  return g;
}

Status run_connected(const OpCall& call, RunContext& context) {
  const Connected c = connected(call);
  if (c.rows * c.columns == 0) return ok_status();
  Gemm g = product_of(call, c);
  if (reads_unpacked(call)) return run_unpacked(unpacked_weights(call), g, context), ok_status();
  const auto* w = call.in(1).as<const float>();
  if (c.rows <= 1) {
    const int64_t grain = std::max<int64_t>(32768 / std::max<int64_t>(c.depth, 1), 4) / 4 * 4;
    parallel_for(context.threads, divide_up(c.columns, grain), 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * grain, last = std::min(end * grain, c.columns);
      gemv(w + first * c.depth, last - first, c.depth, g.a, g.bias != nullptr ? g.bias + first : nullptr,
           g.min, g.max, g.y + first);
    });
    return ok_status();
  }
  auto* packed = reinterpret_cast<float*>(context.workspace.data());
  pack_parallel(w, 1, c.depth, c.columns, c.depth, packed, context.threads);
  g.b = packed;
  gemm_parallel(g, context.threads);
  return ok_status();
}

// ---- FullyConnected with constant weights

Fit takes_panels(const OpCall& call, int, VariantNeeds* needs) {
  const Connected c = connected(call);
  int64_t bytes = 0;
  if (c.rows <= 1 || reads_unpacked(call) || !packed_floats(c.columns, c.depth, &bytes) ||
      !checked_mul<int64_t>(bytes, sizeof(float), &bytes))
    return Fit::kNever;
  needs->packing = form_of(bytes, 0b10, {c.columns, c.depth});
  return Fit::kEverywhere;
}

void pack_connected_panels(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  const Connected c = connected(call);
  pack_parallel(call.in(1).as<const float>(), 1, c.depth, c.columns, c.depth,
                reinterpret_cast<float*>(packed), threads);
}

Status run_connected_panels(const VariantStep& step, const OpCall& call, RunContext& context) {
  const Connected c = connected(call);
  Gemm g = product_of(call, c);
  g.b = reinterpret_cast<const float*>(step.packed);
  if (c.rows * c.columns > 0) gemm_parallel(g, context.threads);
  return ok_status();
}

// ---- MatMul

struct Matrices {
  int64_t rows, columns, depth, batch;
  bool transpose_a, transpose_b;
  // Return the floats of scratch for one matrix of each side.
  int64_t a_copy() const { return transpose_a ? rows * depth : 0; }
};
Matrices matrices(const OpCall& call) {
  const auto& attrs = call.attrs<MatMulAttrs>();
  const TensorView &a = call.in(0), &y = call.out(0);
  Matrices m{
      y.dims[y.rank - 2],     y.dims[y.rank - 1],    a.dims[a.rank - (attrs.transpose_a != 0 ? 2 : 1)], 1,
      attrs.transpose_a != 0, attrs.transpose_b != 0};
  for (int i = 0; i + 2 < y.rank; ++i) m.batch *= y.dims[i];
  return m;
}
// Returns the number of matrices that are computed at a time; each has its own scratch.
int64_t slots_of(const Matrices& m, int64_t threads) {
  return m.batch >= threads && threads > 1 ? threads : 1;
}

Status mat_mul_workspace(const OpCall& call, int threads, size_t* bytes) {
  const Matrices m = matrices(call);
  return workspace_of(m.columns, m.depth, m.a_copy(), slots_of(m, threads), bytes);
}

void multiply_one(const OpCall& call, const Matrices& m, int64_t index, float* scratch, ThreadPool* threads) {
  const TensorView &av = call.in(0), &bv = call.in(1), &yv = call.out(0);
  const float* a = av.as<const float>() + broadcast_index(av, yv, index) * m.rows * m.depth;
  const float* b = bv.as<const float>() + broadcast_index(bv, yv, index) * m.depth * m.columns;
  float* y = yv.as<float>() + index * m.rows * m.columns;
  float* packed = scratch + m.a_copy();
  if (m.transpose_a) {
    for (int64_t r = 0; r < m.rows; ++r)
      for (int64_t k = 0; k < m.depth; ++k) scratch[r * m.depth + k] = a[k * m.rows + r];
    a = scratch;
  }
  if (m.transpose_b && m.rows <= kTooFewToPack) {
    const int64_t grain = std::max<int64_t>(32768 / std::max<int64_t>(m.depth, 1), 4) / 4 * 4;
    parallel_for(threads, divide_up(m.columns, grain), 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * grain, last = std::min(end * grain, m.columns);
      for (int64_t r = 0; r < m.rows; ++r)
        gemv(b + first * m.depth, last - first, m.depth, a + r * m.depth, nullptr, -HUGE_VALF, HUGE_VALF,
             y + r * m.columns + first);
    });
    return;
  }
  Gemm g;
  g.a = a, g.a_stride = m.depth, g.rows = m.rows, g.columns = m.columns, g.depth = m.depth;
  g.y = y, g.y_stride = m.columns;
  // In place, a panel would read past the last columns of b, so that these are packed in any case.
  const int64_t width = panel_width(), whole = m.columns / width * width;
  if (!m.transpose_b && m.rows <= 2 * kTooFewToPack) {
    g.b = b, g.b_step = m.columns, g.columns = whole;
    gemm_parallel(g, threads);
    if (whole == m.columns) return;
    pack_panels(b + whole, m.columns, 1, m.columns - whole, m.depth, m.depth, packed, 0, 1);
    g.b = packed, g.b_step = 0, g.columns = m.columns - whole, g.y = y + whole;
    gemm_columns(g, 0, width);
    return;
  }
  pack_parallel(b, m.transpose_b ? 1 : m.columns, m.transpose_b ? m.depth : 1, m.columns, m.depth, packed,
                threads);
  g.b = packed;
  gemm_parallel(g, threads);
}

Status run_mat_mul(const OpCall& call, RunContext& context) {
  const Matrices m = matrices(call);
  if (call.out(0).size() == 0) return ok_status();
  int64_t each = 0;
  if (!packed_floats(m.columns, m.depth, &each)) return ok_status();
  each += m.a_copy();
  auto* scratch = reinterpret_cast<float*>(context.workspace.data());
  const int64_t slots = slots_of(m, threads_of(context.threads));
  if (slots <= 1) {
    for (int64_t i = 0; i < m.batch; ++i) multiply_one(call, m, i, scratch, context.threads);
    return ok_status();
  }
  parallel_slots(context.threads, slots, m.batch, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply_one(call, m, i, scratch + slot * each, nullptr);
  });
  return ok_status();
}

}  // namespace

const Variant f32_gemm = {.takes = takes_panels,
                          .pack = pack_connected_panels,
                          .run = run_connected_panels,
                          .full_name = gemm_name};
const Kernel kFullyConnectedKernel = {Op::kFullyConnected, nullptr, connected_workspace, run_connected,
                                      accept_connected};
const Kernel kMatMulKernel = {Op::kMatMul, nullptr, mat_mul_workspace, run_mat_mul, accept_float_dense};

}  // namespace sinter::simd

// Transpose: runs of elements that stay together are copied whole; otherwise the two axes that are densest in
// the input and in the output are walked in small tiles, so that both sides stay in the cache.
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

constexpr int64_t kTile = 32;
constexpr int64_t kGrainElements = 1 << 15;

Status infer_transpose(OpCall& call) {
  const auto& a = call.attrs<TransposeAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_UNLESS(a.perm.size() == x.rank,
                       invalid("the permutation has %a axes for rank %b", a.perm.size(), x.rank));
  uint32_t seen = 0;
  Dims dims;
  for (const int64_t axis : a.perm) {
    SINTER_RETURN_IF_ERROR(check_axis(axis, x.rank));
    SINTER_RETURN_UNLESS((seen >> axis & 1) == 0, invalid("axis %a appears twice in the permutation", axis));
    seen |= 1u << axis;
    SINTER_RETURN_IF_ERROR(dims.push(x.dims[axis]));
  }
  return give_output(call, 0, x.dtype, dims.span());
}

// Returns the axis with the smallest step (in size) of operand k.
int densest_axis(const Nest<2>& nest, int k) {
  int best = nest.rank - 1;
  for (int i = nest.rank - 1; i >= 0; --i) {
    const int64_t a = nest.strides[k][i], b = nest.strides[k][best];
    if ((a < 0 ? -a : a) < (b < 0 ? -b : b)) best = i;
  }
  return best;
}

// Copies the plane of axes `a` (densest in the input) and `b` (densest in the output).
template <class T>
void copy_plane(const Nest<2>& nest, int a, int b, std::byte* y, const std::byte* x) {
  const int64_t ya = nest.strides[0][a], xa = nest.strides[1][a], yb = nest.strides[0][b],
                xb = nest.strides[1][b];
  for (int64_t i0 = 0; i0 < nest.dims[a]; i0 += kTile) {
    const int64_t i1 = std::min(i0 + kTile, nest.dims[a]);
    for (int64_t j0 = 0; j0 < nest.dims[b]; j0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, nest.dims[b]);
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j) store<T>(y + i * ya + j * yb, load<T>(x + i * xa + j * xb));
    }
  }
}

Status run_transpose(const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<TransposeAttrs>();
  const TensorView& y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(y.dtype));
  TensorView x = y;  // the input, with its axes in the output's order
  x.data = call.in(0).data;
  for (int i = 0; i < y.rank; ++i) x.strides[i] = call.in(0).strides[attrs.perm[i]];
  const Nest<2> nest = make_nest(y.shape(), y, x);
  if (nest.empty) return ok_status();
  const int a = nest.rank > 0 ? densest_axis(nest, 1) : 0, b = nest.rank > 0 ? densest_axis(nest, 0) : 0;
  if (a == b) return copy_elements(y, x);
  return for_width(byte_width(y.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t planes = 1;
    for (int i = 0; i < nest.rank; ++i)
      if (i != a && i != b) planes *= nest.dims[i];
    const int64_t plane_size = nest.dims[a] * nest.dims[b];
    parallel_for(context.threads, planes, std::max<int64_t>(1, kGrainElements / plane_size),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) {
                     std::byte* to = nest.data[0];
                     const std::byte* from = nest.data[1];
                     int64_t rest = p;
                     for (int i = nest.rank - 1; i >= 0; --i) {
                       if (i == a || i == b) continue;
                       const int64_t at = rest % nest.dims[i];
                       rest /= nest.dims[i];
                       to += at * nest.strides[0][i];
                       from += at * nest.strides[1][i];
                     }
                     copy_plane<T>(nest, a, b, to, from);
                   }
                 });
    return ok_status();
  });
}

}  // namespace

const Kernel kTransposeKernel = reference_kernel({Op::kTranspose, infer_transpose, nullptr, run_transpose});

}  // namespace sinter

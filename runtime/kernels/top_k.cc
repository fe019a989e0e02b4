// TopK: the k largest or smallest elements along an axis, in order; equal ones by index. NaN counts as larger
// than everything. The workspace holds the indices of one line.
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_top_k(OpCall& call) {
  const auto& a = call.attrs<TopKAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  SINTER_RETURN_IF_ERROR(check_code(a.largest, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.sorted, 2));
  SINTER_RETURN_UNLESS(a.k >= 0 && a.k <= x.dims[a.axis],
                       invalid("%a of %b elements cannot be selected", a.k, x.dims[a.axis]));
  Dims dims(x.shape());
  dims.d[a.axis] = a.k;
  SINTER_RETURN_IF_ERROR(give_output(call, 0, x.dtype, dims.span()));
  return give_output(call, 1, DType::kInt64, dims.span());
}

Status top_k_workspace(const OpCall& call, int, size_t* bytes) {
  const int64_t n = call.in(0).dims[call.attrs<TopKAttrs>().axis];
  SINTER_RETURN_UNLESS(checked_mul(static_cast<size_t>(n), sizeof(int64_t), bytes),
                       invalid("the line is too long"));
  return ok_status();
}

template <class T>
void top_k(const OpCall& call, std::span<std::byte> workspace) {
  const auto& a = call.attrs<TopKAttrs>();
  const TensorView& x = call.in(0);
  const auto axis = static_cast<int>(a.axis);
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dims[i];
  for (int i = axis + 1; i < x.rank; ++i) inner *= x.dims[i];
  const int64_t n = x.dims[axis];
  if (a.k == 0) return;
  auto* order = reinterpret_cast<int64_t*>(workspace.data());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const T* line = x.as<T>() + o * n * inner + i;
      for (int64_t k = 0; k < n; ++k) order[k] = k;
      std::partial_sort(order, order + a.k, order + n, [&](int64_t p, int64_t q) {
        const T v = line[p * inner], w = line[q * inner];
        const bool v_nan = v != v, w_nan = w != w;
        if (v_nan != w_nan) return a.largest != 0 ? v_nan : w_nan;
        if (v != w && !v_nan) return a.largest != 0 ? v > w : v < w;
        return p < q;
      });
      const int64_t first = o * a.k * inner + i;
      for (int64_t k = 0; k < a.k; ++k) {
        if (call.has_output(0)) call.out(0).as<T>()[first + k * inner] = line[order[k] * inner];
        if (call.has_output(1)) call.out(1).as<int64_t>()[first + k * inner] = order[k];
      }
    }
}

Status run_top_k(const OpCall& call, RunContext& context) {
  return for_number(call.in(0).dtype, [&](auto tag) {
    top_k<typename decltype(tag)::type>(call, context.workspace);
    return ok_status();
  });
}

}  // namespace

const Kernel kTopKKernel = reference_kernel({Op::kTopK, infer_top_k, top_k_workspace, run_top_k});

}  // namespace sinter

// Lut: a function of one byte as a table.
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_lut(OpCall& call) {
  const TensorView &x = call.in(0), &table = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, x.dtype == DType::kInt8 || x.dtype == DType::kUint8));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1,
                                     byte_width(table.dtype) == 1 || table.dtype == DType::kInt16 ||
                                         table.dtype == DType::kUint16 || table.dtype == DType::kFloat32));
  SINTER_RETURN_UNLESS(table.rank == 1 && table.dims[0] == 256,
                       invalid("the table does not have 256 elements"));
  return give_output(call, 0, table.dtype, x.shape());
}

// The table is read first: an x of 256 elements may leave its result in the table's memory.
Status run_lut(const OpCall& call, RunContext&) {
  const TensorView &x = call.in(0), &table = call.in(1), &y = call.out(0);
  return for_width(byte_width(table.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T entries[256];
    for (int64_t i = 0; i < 256; ++i) entries[i] = load<T>(table.data + i * table.strides[0]);
    if (x.dtype == DType::kInt8)
      map_unary<T, int8_t>(y, x, [&](int8_t v) { return entries[v + 128]; });
    else
      map_unary<T, uint8_t>(y, x, [&](uint8_t v) { return entries[v]; });
    return ok_status();
  });
}

}  // namespace

const Kernel kLutKernel = reference_kernel({Op::kLut, infer_lut, nullptr, run_lut});

}  // namespace sinter

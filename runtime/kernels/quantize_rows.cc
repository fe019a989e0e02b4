// QuantizeRows.
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_call(OpCall&) { return unsupported("QuantizeRows is not built yet"); }
Status run(const OpCall&, RunContext&) { return ok_status(); }

}  // namespace

const Kernel kQuantizeRowsKernel = reference_kernel({Op::kQuantizeRows, infer_call, nullptr, run});

}  // namespace sinter

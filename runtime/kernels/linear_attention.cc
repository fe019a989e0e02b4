// LinearAttention.
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_call(OpCall&) { return unsupported("LinearAttention is not built yet"); }
Status run(const OpCall&, RunContext&) { return ok_status(); }

}  // namespace

const Kernel kLinearAttentionKernel = reference_kernel({Op::kLinearAttention, infer_call, nullptr, run});

}  // namespace sinter

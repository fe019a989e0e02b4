// ExpertFullyConnected.
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status infer_call(OpCall&) { return unsupported("ExpertFullyConnected is not built yet"); }
Status run(const OpCall&, RunContext&) { return ok_status(); }

}  // namespace

const Kernel kExpertFullyConnectedKernel = reference_kernel({Op::kExpertFullyConnected, infer_call, nullptr, run});

}  // namespace sinter

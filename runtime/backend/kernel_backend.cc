#include "runtime/backend/backend.h"

namespace sinter {
namespace {

const Kernel* find(KernelTable kernels, Op op) {
  const int row = op_index(op);
  return row >= 0 && row < static_cast<int>(kernels.size()) ? kernels[row] : nullptr;
}

Status run_kernel(void* state, const OpCall& call, RunContext& context) {
  return static_cast<const Kernel*>(state)->run(call, context);
}

}  // namespace

Status KernelBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  *needs = {};
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  const Kernel* kernel = find(kernels_, call.op);
  SINTER_RETURN_UNLESS(kernel != nullptr && kernel->run != nullptr,
                       unsupported("the backend has no kernel for this operation"));
  if (kernel->accept != nullptr) SINTER_RETURN_IF_ERROR(kernel->accept(call));
  return kernel->workspace != nullptr ? kernel->workspace(call, threads, &needs->workspace) : ok_status();
}

Status KernelBackend::prepare(const OpCall& call, const Preparation&, PreparedStep* step) {
  const Kernel* kernel = find(kernels_, call.op);
  SINTER_RETURN_UNLESS(kernel != nullptr && kernel->run != nullptr,
                       unsupported("the backend has no kernel for this operation"));
  step->run = run_kernel;
  step->state = const_cast<Kernel*>(kernel);
  return ok_status();
}

}  // namespace sinter

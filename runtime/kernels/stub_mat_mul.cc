#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kMatMulKernel = {
    Op::kMatMul, [](OpCall&) { return unsupported("MatMul is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

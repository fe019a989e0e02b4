#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSigmoidKernel = {
    Op::kSigmoid, [](OpCall&) { return unsupported("Sigmoid is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

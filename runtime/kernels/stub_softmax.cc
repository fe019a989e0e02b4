#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSoftmaxKernel = {
    Op::kSoftmax, [](OpCall&) { return unsupported("Softmax is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kDepthwiseConvKernel = {
    Op::kDepthwiseConv, [](OpCall&) { return unsupported("DepthwiseConv is not implemented yet"); }, nullptr,
    nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kMaxPoolKernel = {
    Op::kMaxPool, [](OpCall&) { return unsupported("MaxPool is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

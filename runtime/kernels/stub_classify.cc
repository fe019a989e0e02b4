#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kClassifyKernel = {
    Op::kClassify, [](OpCall&) { return unsupported("Classify is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

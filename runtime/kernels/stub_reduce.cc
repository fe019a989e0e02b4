#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kReduceKernel = {
    Op::kReduce, [](OpCall&) { return unsupported("Reduce is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

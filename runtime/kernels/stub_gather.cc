#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGatherKernel = {
    Op::kGather, [](OpCall&) { return unsupported("Gather is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

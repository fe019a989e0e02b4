#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGatherNdKernel = {
    Op::kGatherNd, [](OpCall&) { return unsupported("GatherNd is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

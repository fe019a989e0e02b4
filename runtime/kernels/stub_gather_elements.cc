#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGatherElementsKernel = {
    Op::kGatherElements, [](OpCall&) { return unsupported("GatherElements is not implemented yet"); },
    nullptr, nullptr};

}  // namespace sinter

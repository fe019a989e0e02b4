#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kScatterElementsKernel = {
    Op::kScatterElements, [](OpCall&) { return unsupported("ScatterElements is not implemented yet"); },
    nullptr, nullptr};

}  // namespace sinter

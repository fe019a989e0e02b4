#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kResizeKernel = {
    Op::kResize, [](OpCall&) { return unsupported("Resize is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

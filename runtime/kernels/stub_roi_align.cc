#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kRoiAlignKernel = {
    Op::kRoiAlign, [](OpCall&) { return unsupported("RoiAlign is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

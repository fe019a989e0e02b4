#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kBitNotKernel = {
    Op::kBitNot, [](OpCall&) { return unsupported("BitNot is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

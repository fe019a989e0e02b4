#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kBitwiseKernel = {
    Op::kBitwise, [](OpCall&) { return unsupported("Bitwise is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

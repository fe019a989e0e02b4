#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kConvTransposeKernel = {
    Op::kConvTranspose, [](OpCall&) { return unsupported("ConvTranspose is not implemented yet"); }, nullptr,
    nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kConcatKernel = {
    Op::kConcat, [](OpCall&) { return unsupported("Concat is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

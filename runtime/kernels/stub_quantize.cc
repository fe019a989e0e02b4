#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kQuantizeKernel = {
    Op::kQuantize, [](OpCall&) { return unsupported("Quantize is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

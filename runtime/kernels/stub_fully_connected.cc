#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kFullyConnectedKernel = {
    Op::kFullyConnected, [](OpCall&) { return unsupported("FullyConnected is not implemented yet"); },
    nullptr, nullptr};

}  // namespace sinter

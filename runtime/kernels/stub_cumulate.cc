#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kCumulateKernel = {
    Op::kCumulate, [](OpCall&) { return unsupported("Cumulate is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kReverseSequenceKernel = {
    Op::kReverseSequence, [](OpCall&) { return unsupported("ReverseSequence is not implemented yet"); },
    nullptr, nullptr};

}  // namespace sinter

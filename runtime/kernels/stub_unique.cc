#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kUniqueKernel = {
    Op::kUnique, [](OpCall&) { return unsupported("Unique is not implemented yet"); }, nullptr, nullptr};

}  // namespace sinter

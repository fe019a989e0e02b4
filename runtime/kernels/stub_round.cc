#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kRoundKernel = {Op::kRound, [](OpCall&) { return unsupported("Round is not implemented yet"); },
                             nullptr, nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kIfKernel = {Op::kIf, [](OpCall&) { return unsupported("If is not implemented yet"); }, nullptr,
                          nullptr};

}  // namespace sinter

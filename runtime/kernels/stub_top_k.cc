#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kTopKKernel = {Op::kTopK, [](OpCall&) { return unsupported("TopK is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter

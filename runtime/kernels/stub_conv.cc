#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kConvKernel = {Op::kConv, [](OpCall&) { return unsupported("Conv is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter

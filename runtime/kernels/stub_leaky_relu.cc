#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kLeakyReluKernel = {Op::kLeakyRelu,
                                 [](OpCall&) { return unsupported("LeakyRelu is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter

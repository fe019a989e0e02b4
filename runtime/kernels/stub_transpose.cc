#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kTransposeKernel = {Op::kTranspose,
                                 [](OpCall&) { return unsupported("Transpose is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter

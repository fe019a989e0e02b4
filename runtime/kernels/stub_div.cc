#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kDivKernel = {Op::kDiv, [](OpCall&) { return unsupported("Div is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGruKernel = {Op::kGru, [](OpCall&) { return unsupported("Gru is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter

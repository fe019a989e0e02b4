#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kLstmKernel = {Op::kLstm, [](OpCall&) { return unsupported("Lstm is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter

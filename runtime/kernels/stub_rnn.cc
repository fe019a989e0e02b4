#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kRnnKernel = {Op::kRnn, [](OpCall&) { return unsupported("Rnn is not implemented yet"); },
                           nullptr, nullptr};

}  // namespace sinter

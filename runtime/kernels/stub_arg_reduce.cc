#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kArgReduceKernel = {Op::kArgReduce,
                                 [](OpCall&) { return unsupported("ArgReduce is not implemented yet"); },
                                 nullptr, nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kWhereKernel = {Op::kWhere, [](OpCall&) { return unsupported("Where is not implemented yet"); },
                             nullptr, nullptr};

}  // namespace sinter

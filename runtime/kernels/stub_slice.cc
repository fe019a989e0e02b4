#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kSliceKernel = {Op::kSlice, [](OpCall&) { return unsupported("Slice is not implemented yet"); },
                             nullptr, nullptr};

}  // namespace sinter

#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kGridSampleKernel = {Op::kGridSample,
                                  [](OpCall&) { return unsupported("GridSample is not implemented yet"); },
                                  nullptr, nullptr};

}  // namespace sinter

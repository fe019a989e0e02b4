#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kDequantizeKernel = {Op::kDequantize,
                                  [](OpCall&) { return unsupported("Dequantize is not implemented yet"); },
                                  nullptr, nullptr};

}  // namespace sinter

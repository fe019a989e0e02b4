#include "runtime/kernels/reference.h"

namespace sinter {

KernelTable reference_kernels() {
  static constexpr const Kernel* kTable[] = {
#define SINTER_OP(name, ...) &k##name##Kernel,
#include "schemas/ops.def"
#undef SINTER_OP
  };
  return kTable;
}

}  // namespace sinter

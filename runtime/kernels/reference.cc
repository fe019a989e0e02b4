#include "runtime/kernels/reference.h"

#include "runtime/core/built.h"

namespace sinter {

KernelTable reference_kernels() {
  static constexpr const Kernel* kTable[] = {
#define SINTER_OP(name, ...) is_built(Op::k##name) ? &k##name##Kernel : nullptr,
#include "schemas/ops.def"
#undef SINTER_OP
  };
  return kTable;
}

}  // namespace sinter

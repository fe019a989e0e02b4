#include "platforms/cuda/operators.h"

namespace sinter::cuda {

Status (*operator_of(Op op))(Lowering&) {
  switch (op) {
#define SINTER_CUDA(name, family) \
  case Op::k##name:               \
    return lower_##name;
#include "platforms/cuda/operators.def"
#undef SINTER_CUDA
    default:
      return nullptr;
  }
}

}  // namespace sinter::cuda

#include "runtime/core/dtype.h"

#include "runtime/core/dtype_names.h"

namespace sinter {

const char* dtype_name(DType t) { return t < DType::kCount ? kDTypeNames[static_cast<size_t>(t)] : "?"; }

}  // namespace sinter

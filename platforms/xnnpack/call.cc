#include "platforms/xnnpack/call.h"

#include "runtime/core/integer_limits.h"

namespace sinter::xnnpack {

Status outcome(xnn_status status, const Creation& creation, bool* stopped) {
  *stopped = status != xnn_status_success;
  if (!*stopped || creation.refused()) return ok_status();
  if (status == xnn_status_unsupported_hardware)
    return unsupported("this processor lacks the instructions that the operator needs");
  return status == xnn_status_out_of_memory
             ? error(Code::kInternal, "XNNPACK needs more memory than it measured")
             : unsupported("XNNPACK refuses the operator");
}

Status set_up_outcome(xnn_status status) {
  SINTER_RETURN_UNLESS(status == xnn_status_success,
                       error(Code::kInternal, "XNNPACK refuses its operands' addresses"));
  return ok_status();
}

Status same_size(const Window& w, size_t h, size_t width) {
  SINTER_RETURN_UNLESS(h == w.out_h && width == w.out_w, unsupported("XNNPACK gives a different size"));
  return ok_status();
}

Status check_multipliers(const OpCall& call) {
  const TensorView& multipliers = call.in(3);
  SINTER_RETURN_UNLESS(multipliers.data != nullptr, unsupported("the multipliers are not known yet"));
  for (int64_t i = 0; i < multipliers.dims[0]; ++i) {
    SINTER_RETURN_UNLESS(is_product_multiplier(static_cast<double>(multipliers.as<float>()[i])),
                         unsupported("a multiplier is not from 2^-32 to 256"));
  }
  return ok_status();
}

}  // namespace sinter::xnnpack

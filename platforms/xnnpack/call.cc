#include "platforms/xnnpack/call.h"

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
  SINTER_RETURN_UNLESS(call.in(3).data != nullptr, unsupported("the multipliers are not known yet"));
  return ok_status();
}

}  // namespace sinter::xnnpack

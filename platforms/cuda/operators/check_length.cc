// CheckLength.
#include "platforms/cuda/operators.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {

Status lower_CheckLength(Lowering& l) {
  const auto rule = static_cast<LengthRule>(l.attrs<CheckLengthAttrs>().rule);
  if (rule == LengthRule::kUnfit) return unsupported("the host reports it in words");
  CheckLengthArguments a;
  a.length = l.in(0).as<const int64_t>(), a.found = l.in(1).as<const int64_t>();
  a.limit = l.in(2).as<const int64_t>(), a.result = l.out(0).as<int64_t>();
  a.within = rule == LengthRule::kWithin || rule == LengthRule::kPlanned;
  a.fault = l.fault();
  return l.launch<Kernel::k_check_length>({}, a);
}

}  // namespace sinter::cuda

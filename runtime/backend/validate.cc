// Checks that are the same for every kernel table; separate from the reference table, so that using them does
// not link kernels.
#include "runtime/backend/validate.h"

namespace sinter {
namespace {

Status check_arity(const OpCall& call) {
  const OpInfo* info = op_info(call.op);
  SINTER_RETURN_UNLESS(info != nullptr, corrupt("operation number %a is unknown to this build",
                                                static_cast<int64_t>(call.op)));
  const auto inputs = static_cast<int64_t>(call.inputs.size()),
             outputs = static_cast<int64_t>(call.outputs.size());
  SINTER_RETURN_UNLESS(inputs >= info->min_inputs && (info->max_inputs < 0 || inputs <= info->max_inputs),
                       invalid("%a inputs do not match the operation", inputs));
  SINTER_RETURN_UNLESS(
      outputs >= info->min_outputs && (info->max_outputs < 0 || outputs <= info->max_outputs),
      invalid("%a outputs do not match the operation", outputs));
  for (int64_t i = 0; i < info->min_inputs && (info->traits & kControl) == 0; ++i)
    SINTER_RETURN_UNLESS(call.inputs[i].present(), invalid("it is missing").of_input(static_cast<size_t>(i)));
  // The only result of an operation is written without a check whether it is used.
  bool any = outputs == 0 || (info->traits & kControl) != 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) any = any || wanted(call, i);
  SINTER_RETURN_UNLESS(any, invalid("none of the operation's outputs is used"));
  return ok_status();
}

}  // namespace

Status infer(OpCall& call, KernelTable kernels) {
  SINTER_RETURN_IF_ERROR(check_arity(call));
  const int row = op_index(call.op);
  SINTER_RETURN_UNLESS(row < static_cast<int>(kernels.size()) && kernels[row] != nullptr,
                       unsupported("no kernel for this operation is linked"));
  return kernels[row]->infer(call);
}

bool takes_strides(Strides row, const TensorView& view, bool first) {
  int64_t pixel = 0;
  return row == Strides::kAny || view.dense() ||
         (row == Strides::kPixel && first && view.evenly_spaced(&pixel));
}

}  // namespace sinter

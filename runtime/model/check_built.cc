// The refusal, when a model is opened, of operations and types that a lean build does not compute.
#include "runtime/core/dtype_names.h"
#include "runtime/model/verify.h"

namespace sinter::detail {
namespace {

Status check_type(uint8_t dtype) {
  const auto t = static_cast<DType>(dtype);
  SINTER_RETURN_UNLESS(is_built(t), unsupported("this program is built without element type %A", dtype));
  return ok_status();
}

Status check_step(const ModelState& model, const fb::Step& step) {
  const Op op = step_op(step);
  const int row = op_index(op);
  SINTER_RETURN_UNLESS(row >= 0, unsupported("operation number %a is unknown to this build", step.op()));
  SINTER_RETURN_UNLESS(
      step.op_version() <= op_info_at(row).version,
      unsupported("version %a of the operation is newer than this build", step.op_version()));
  SINTER_RETURN_UNLESS(
      is_built(op) && static_cast<size_t>(row) < model.kernels.size() && model.kernels[row] != nullptr,
      unsupported("this program is built without operation %s", name_of(op_name(op))));
  return ok_status();
}

}  // namespace

Status check_built(const ModelState& model) {
  if (!kLean && !kSealed) return ok_status();  // verified
  const fb::Model& root = *model.root;
  for (uint32_t p = 0; p < length(root.programs()); ++p) {
    const fb::Program& program = *root.programs()->Get(p);
    for (uint32_t v = 0; v < length(program.values()); ++v)
      SINTER_RETURN_IF_ERROR(check_type(program.values()->Get(v)->dtype()).at_step(v, p, Where::kValue));
    for (uint32_t s = 0; s < length(program.steps()); ++s)
      SINTER_RETURN_IF_ERROR(check_step(model, *program.steps()->Get(s)).at_step(s, p));
    for (uint32_t s = 0; s < length(program.prepare()); ++s)
      SINTER_RETURN_IF_ERROR(check_step(model, *program.prepare()->Get(s)).at_step(s, p));
  }
  return ok_status();
}

}  // namespace sinter::detail

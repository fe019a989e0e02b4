// Custom: an operator of the application, called through its descriptor. Its rule and its kernel are foreign
// code, whose results are checked.
#include "runtime/core/custom_definition.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

constexpr size_t kMostOperands = SINTER_CUSTOM_MAX_OPERANDS;

// The data that a call passes to the operator's functions.
enum class Data { kNone, kConstants, kAll };

Status not_given(const OpCall& call) {
  const AttrBytes& definition = call.attrs<CustomAttrs>().definition;
  SINTER_RETURN_IF_ERROR(check_definition(definition));
  return unsupported(
      "custom operator %s.%t is not given to this program; give it in custom_ops (--custom-ops)",
      name_of(custom_domain(definition)), name_of(custom_name(definition)));
}

Status check_count(size_t count, uint32_t low, uint32_t high, const char* what) {
  SINTER_RETURN_UNLESS(
      count >= low && count <= high,
      unsupported("the operator does not take %a %t", static_cast<int64_t>(count), name_of(what)));
  return ok_status();
}

bool has_element_type(const TensorView& v) { return v.dtype <= DType::kBool; }

// A call in the form of the operator's interface.
struct CustomCall {
  sinter_custom_tensor operands[kMostOperands] = {};
  sinter_custom_call call = {};

  // There are at most kMostOperands operands and results, of types that sinter_type has.
  CustomCall(const OpCall& from, Data data, std::span<std::byte> workspace = {}) {
    const CustomAttrs& attrs = from.attrs<CustomAttrs>();
    call.op = attrs.op;
    call.inputs = operands;
    call.outputs = operands + from.inputs.size();
    call.input_count = from.inputs.size();
    call.output_count = from.outputs.size();
    call.workspace = workspace.data();
    call.workspace_bytes = workspace.size();
    call.attributes = &attrs.definition;
    call.find_attribute = find_custom_attribute;
    sinter_custom_tensor* to = operands;
    for (const TensorView& v : from.inputs) {
      const bool small = v.constant && v.dense_bytes() <= SINTER_CUSTOM_RULE_BYTES;
      fill(v, data == Data::kAll || (data == Data::kConstants && small), to++);
    }
    for (const TensorView& v : from.outputs) fill(v, data == Data::kAll, to++);
  }

  static void fill(const TensorView& v, bool data, sinter_custom_tensor* to) {
    if (!v.present()) return;
    *to = {static_cast<int32_t>(v.dtype), v.rank, v.dims, static_cast<size_t>(v.dense_bytes()),
           data ? v.data : nullptr};
  }
};

Status check_call(const OpCall& call) {
  const CustomAttrs& attrs = call.attrs<CustomAttrs>();
  if (attrs.op == nullptr) return not_given(call);
  const sinter_custom_op& op = *attrs.op;
  SINTER_RETURN_UNLESS(call.inputs.size() + call.outputs.size() <= kMostOperands,
                       unsupported("a custom operator has at most %a operands and results together",
                                   SINTER_CUSTOM_MAX_OPERANDS));
  SINTER_RETURN_IF_ERROR(check_count(call.inputs.size(), op.min_inputs, op.max_inputs, "operands"));
  SINTER_RETURN_IF_ERROR(check_count(call.outputs.size(), op.min_outputs, op.max_outputs, "results"));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    SINTER_RETURN_UNLESS(i >= op.min_inputs || call.in(i).present(),
                         unsupported("it is missing").of_input(i));
    SINTER_RETURN_IF_ERROR(check_dtype(call, i, has_element_type(call.in(i))));
  }
  return ok_status();
}

Status infer_custom(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_call(call));
  const CustomAttrs& attrs = call.attrs<CustomAttrs>();
  SINTER_RETURN_IF_ERROR(check_custom_attributes(attrs.definition, *attrs.op));
  sinter_custom_shape results[kMostOperands] = {};
  const CustomCall given(call, Data::kConstants);
  const char* refusal = attrs.op->infer(&given.call, results);
  SINTER_RETURN_UNLESS(refusal == nullptr, unsupported("the rule of custom operator %s refuses it: %t",
                                                       name_of(attrs.op->name), name_of(refusal)));
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const sinter_custom_shape& result = results[i];
    const auto index = static_cast<int64_t>(i);
    SINTER_RETURN_UNLESS(result.type >= SINTER_FLOAT32 && result.type <= SINTER_BOOL,
                         unsupported("the rule of custom operator %s gives no element type for result %b",
                                     name_of(attrs.op->name), index));
    SINTER_RETURN_UNLESS(result.rank >= 0 && result.rank <= kMaxRank,
                         unsupported("the rule of custom operator %s gives an impossible rank for result %b",
                                     name_of(attrs.op->name), index));
    for (int32_t d = 0; d < result.rank; ++d)
      SINTER_RETURN_UNLESS(
          result.dims[d] >= 0,
          unsupported("the rule of custom operator %s gives a negative dim for result %b; the "
                      "size of a result must be fixed",
                      name_of(attrs.op->name), index));
    SINTER_RETURN_IF_ERROR(give_output(call, i, static_cast<DType>(result.type),
                                       {result.dims, static_cast<size_t>(result.rank)}));
  }
  return ok_status();
}

Status custom_workspace(const OpCall& call, int, size_t* bytes) {
  SINTER_RETURN_IF_ERROR(check_call(call));
  const sinter_custom_op& op = *call.attrs<CustomAttrs>().op;
  *bytes = 0;
  if (op.workspace == nullptr) return ok_status();
  const CustomCall given(call, Data::kNone);
  const char* refusal = op.workspace(&given.call, bytes);
  SINTER_RETURN_UNLESS(refusal == nullptr,
                       unsupported("custom operator %s refuses it: %t", name_of(op.name), name_of(refusal)));
  SINTER_RETURN_UNLESS(*bytes <= SIZE_MAX / 8, too_much_workspace());
  return ok_status();
}

Status run_custom(const OpCall& call, RunContext& context) {
  const CustomAttrs& attrs = call.attrs<CustomAttrs>();
  const CustomCall given(call, Data::kAll, context.workspace);
  const char* failure = attrs.op->compute(&given.call);
  SINTER_RETURN_UNLESS(failure == nullptr, error(Code::kOutOfRange, "custom operator %s fails: %t",
                                                 name_of(attrs.op->name), name_of(failure)));
  return ok_status();
}

}  // namespace

const Kernel kCustomKernel =
    reference_kernel({Op::kCustom, infer_custom, custom_workspace, run_custom, check_call});

}  // namespace sinter

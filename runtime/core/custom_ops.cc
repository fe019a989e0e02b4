#include "runtime/core/custom_ops.h"

#include <cstring>

#include "runtime/core/custom_definition.h"

namespace sinter {
namespace {

bool is_name(const char* text) {
  return text != nullptr && text[0] != '\0' && std::memchr(text, 0, kMostNameBytes) != nullptr;
}

bool are_attributes(const sinter_custom_op& op) {
  if (op.attribute_count > kMostCustomAttributes || (op.attribute_count > 0 && op.attributes == nullptr))
    return false;
  for (uint32_t i = 0; i < op.attribute_count; ++i) {
    const sinter_attribute_rule& rule = op.attributes[i];
    if (!is_name(rule.name) || rule.kind < SINTER_ATTRIBUTE_INT || rule.kind > SINTER_ATTRIBUTE_TENSOR)
      return false;
    for (uint32_t j = 0; j < i; ++j)
      if (std::strcmp(op.attributes[j].name, rule.name) == 0) return false;
  }
  return true;
}

}  // namespace

Status check_custom_ops(CustomOps ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    SINTER_RETURN_UNLESS(ops[i] != nullptr, invalid("custom operator %a is a null pointer", index));
    const sinter_custom_op& op = *ops[i];
    SINTER_RETURN_UNLESS(op.abi == SINTER_CUSTOM_OP_ABI,
                         invalid("custom operator %a is built for version %b of sinter/custom_op.h, which "
                                 "differs from this program's; build it with this program's header",
                                 index, op.abi));
    SINTER_RETURN_UNLESS(
        is_name(op.domain) && is_name(op.name),
        invalid("custom operator %a lacks a domain or a name of 1 to %b bytes", index, kMostNameBytes - 1));
    SINTER_RETURN_UNLESS(
        std::strcmp(op.domain, "ai.onnx") != 0,
        invalid("custom operator %s is in ONNX's own domain; give it one of its own", name_of(op.name)));
    SINTER_RETURN_UNLESS(op.infer != nullptr && op.compute != nullptr,
                         invalid("custom operator %s lacks a rule or a kernel", name_of(op.name)));
    SINTER_RETURN_UNLESS(
        op.since_version >= 1 && op.reserved == 0 && op.min_inputs <= op.max_inputs && op.min_outputs >= 1 &&
            op.min_outputs <= op.max_outputs && op.max_inputs <= SINTER_CUSTOM_MAX_OPERANDS &&
            op.max_outputs <= SINTER_CUSTOM_MAX_OPERANDS,
        invalid("custom operator %s has an impossible version or number of operands or results",
                name_of(op.name)));
    SINTER_RETURN_UNLESS(
        are_attributes(op),
        invalid("the attributes that custom operator %s states are not names with kinds, each once",
                name_of(op.name)));
    for (size_t j = 0; j < i; ++j)
      SINTER_RETURN_UNLESS(ops[j]->since_version != op.since_version ||
                               std::strcmp(ops[j]->name, op.name) != 0 ||
                               std::strcmp(ops[j]->domain, op.domain) != 0,
                           invalid("custom operator %s.%t is given twice; leave one out", name_of(op.domain),
                                   name_of(op.name)));
  }
  return ok_status();
}

const sinter_custom_op* find_custom_op(CustomOps ops, const char* domain, const char* name,
                                       uint32_t version) {
  for (const sinter_custom_op* op : ops)
    if (op->since_version == version && std::strcmp(op->name, name) == 0 &&
        std::strcmp(op->domain, domain) == 0)
      return op;
  return nullptr;
}

}  // namespace sinter

// A custom operator for the fuzzed models: com.test.Scale of tests/custom/library.c, with a kernel that
// copies its operand. The seeds corpus/model/custom_*.sinter, which have steps of it, are models of
// tests/custom/custom_ops.py.
#pragma once

#include <cstring>

#include "sinter/custom_op.h"

namespace sinter::fuzz {

inline const char* infer_copy(const sinter_custom_call* call, sinter_custom_shape* results) {
  const sinter_custom_tensor& x = call->inputs[0];
  // Every byte that a rule may read is readable.
  for (size_t i = 0; i < call->input_count; ++i)
    if (call->inputs[i].data != nullptr && call->inputs[i].bytes > 0) {
      volatile const char* bytes = static_cast<const char*>(call->inputs[i].data);
      (void)bytes[0], (void)bytes[call->inputs[i].bytes - 1];
    }
  (void)std::strlen(sinter_custom_text(call, "mode", ""));
  results[0].type = x.type;
  results[0].rank = x.rank;
  for (int32_t d = 0; d < x.rank; ++d) results[0].dims[d] = x.dims[d];
  return nullptr;
}

inline const char* workspace_copy(const sinter_custom_call* call, size_t* bytes) {
  const sinter_custom_tensor& x = call->inputs[0];
  *bytes = x.rank > 0 ? static_cast<size_t>(x.dims[x.rank - 1]) * sizeof(float) : 0;
  return nullptr;
}

inline const char* compute_copy(const sinter_custom_call* call) {
  const size_t bytes = call->inputs[0].bytes;
  if (call->outputs[0].bytes != bytes) return "its result has another size";
  if (call->workspace_bytes > 0) std::memset(call->workspace, 0, call->workspace_bytes);
  if (bytes > 0) std::memcpy(call->outputs[0].data, call->inputs[0].data, bytes);
  return nullptr;
}

inline constexpr sinter_attribute_rule kCopyAttributes[] = {
    {"factor", SINTER_ATTRIBUTE_FLOAT, 0},   {"power", SINTER_ATTRIBUTE_INT, 0},
    {"mode", SINTER_ATTRIBUTE_TEXT, 1},      {"blob", SINTER_ATTRIBUTE_BYTES, 0},
    {"offsets", SINTER_ATTRIBUTE_FLOATS, 0}, {"axes", SINTER_ATTRIBUTE_INTS, 0},
    {"names", SINTER_ATTRIBUTE_TEXTS, 0},    {"table", SINTER_ATTRIBUTE_TENSOR, 0},
};

inline constexpr sinter_custom_op kCopyingOp = {
    SINTER_CUSTOM_OP_ABI, 0,          "com.test",     "Scale",      1,      1, 2, 1, 1, 8,
    kCopyAttributes,      infer_copy, workspace_copy, compute_copy, nullptr};
inline constexpr const sinter_custom_op* kFuzzedOps[] = {&kCopyingOp};

}  // namespace sinter::fuzz

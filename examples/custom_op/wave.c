/* com.example.Wave: y = gain * sin(x) or gain * cos(x), by the attributes `shape` ("sin" or "cos", required)
 * and `gain` (a float, 1 by default). The same file is the converter's library and a part of the application.
 */
#include <math.h>
#include <string.h>

#include "sinter/custom_op.h"

static const sinter_attribute_rule kAttributes[] = {
    {"shape", SINTER_ATTRIBUTE_TEXT, 1},
    {"gain", SINTER_ATTRIBUTE_FLOAT, 0},
};

static const char* infer(const sinter_custom_call* call, sinter_custom_shape* results) {
  const sinter_custom_tensor* x = &call->inputs[0];
  const char* shape = sinter_custom_text(call, "shape", "");
  if (x->type != SINTER_FLOAT32) return "its operand must be float32";
  if (strcmp(shape, "sin") != 0 && strcmp(shape, "cos") != 0) return "its shape must be sin or cos";
  results[0].type = x->type;
  results[0].rank = x->rank;
  memcpy(results[0].dims, x->dims, (size_t)x->rank * sizeof x->dims[0]);
  return NULL;
}

static const char* compute(const sinter_custom_call* call) {
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  const size_t count = call->inputs[0].bytes / sizeof *x;
  const float gain = sinter_custom_float(call, "gain", 1);
  const int is_sin = strcmp(sinter_custom_text(call, "shape", ""), "sin") == 0;
  for (size_t i = 0; i < count; ++i) {
    if (!isfinite(x[i])) return "its operand has a number that is not finite";
    y[i] = gain * (is_sin ? sinf(x[i]) : cosf(x[i]));
  }
  return NULL;
}

const sinter_custom_op wave_op = {
    .abi = SINTER_CUSTOM_OP_ABI,
    .domain = "com.example",
    .name = "Wave",
    .since_version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .attribute_count = sizeof kAttributes / sizeof kAttributes[0],
    .attributes = kAttributes,
    .infer = infer,
    .compute = compute,
};

/* For `--custom-ops`. */
const sinter_custom_op* const* sinter_custom_ops(size_t* count) {
  static const sinter_custom_op* const ops[] = {&wave_op};
  *count = 1;
  return ops;
}

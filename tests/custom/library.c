/* Operators for the tests of custom operators: each compiled copy has the fault that FAULT names. */
#include <string.h>

#include "sinter/custom_op.h"

#ifndef FAULT
#define FAULT 0
#endif
enum {
  kNone,
  kAbi,
  kHugeDims,
  kNegativeDims,
  kRank,
  kType,
  kRefusal,
  kFailure,
  kMissingRule,
  kTwice,
  kOther,
  kNewer
};

/* com.test.Scale(x, by?) = x * factor * (by, or 1): float32 or float16. Attributes of every kind; `offsets`
 * are added by column, `table` is a tensor of what is added to all, `blob` the bytes of which the first is
 * added. */
static const sinter_attribute_rule kScale[] = {
    {"factor", SINTER_ATTRIBUTE_FLOAT, 0},   {"power", SINTER_ATTRIBUTE_INT, 0},
    {"mode", SINTER_ATTRIBUTE_TEXT, 1},      {"blob", SINTER_ATTRIBUTE_BYTES, 0},
    {"offsets", SINTER_ATTRIBUTE_FLOATS, 0}, {"axes", SINTER_ATTRIBUTE_INTS, 0},
    {"names", SINTER_ATTRIBUTE_TEXTS, 0},    {"table", SINTER_ATTRIBUTE_TENSOR, 0},
};

static void like(const sinter_custom_tensor* x, sinter_custom_shape* y) {
  y->type = x->type;
  y->rank = x->rank;
  memcpy(y->dims, x->dims, (size_t)x->rank * sizeof x->dims[0]);
}

static const char* infer_scale(const sinter_custom_call* call, sinter_custom_shape* results) {
  const sinter_custom_tensor* x = &call->inputs[0];
  if (FAULT == kRefusal) return "this rule refuses everything";
  if (x->type != SINTER_FLOAT32 && x->type != SINTER_FLOAT16) return "x must be float32 or float16";
  if (x->rank < 1) return "x must have an axis";
  like(x, &results[0]);
  if (FAULT == kHugeDims) results[0].dims[0] = INT64_MAX;
  if (FAULT == kNegativeDims) results[0].dims[0] = -1;
  if (FAULT == kRank) results[0].rank = 1000;
  if (FAULT == kType) results[0].type = 77;
  return NULL;
}

static const char* workspace_scale(const sinter_custom_call* call, size_t* bytes) {
  *bytes = (size_t)call->inputs[0].dims[call->inputs[0].rank - 1] * sizeof(float);
  return NULL;
}

static const char* compute_scale(const sinter_custom_call* call) {
  const sinter_custom_tensor* x = &call->inputs[0];
  const int64_t columns = x->dims[x->rank - 1];
  float* added = call->workspace;
  float scale = sinter_custom_float(call, "factor", 1), more = 0;
  sinter_attribute a;
  if (FAULT == kFailure) return "this kernel fails always";
  if (call->workspace_bytes < (size_t)columns * sizeof(float)) return "the workspace is too small";
  if (strcmp(sinter_custom_text(call, "mode", ""), "negative") == 0) scale = -scale;
  for (int64_t i = sinter_custom_int(call, "power", 1); i > 1; --i)
    scale *= sinter_custom_float(call, "factor", 1);
  if (call->input_count > 1 && call->inputs[1].type == SINTER_FLOAT32)
    scale *= *(const float*)call->inputs[1].data;
  if (call->find_attribute(call->attributes, "blob", &a) && a.count > 0)
    more += ((const unsigned char*)a.data)[0];
  if (call->find_attribute(call->attributes, "axes", &a))
    for (uint32_t i = 0; i < a.count; ++i) more += (float)((const int64_t*)a.data)[i];
  if (call->find_attribute(call->attributes, "names", &a))
    for (uint32_t i = 0; i < a.count; ++i) more += (float)strlen(sinter_custom_text_of(&a, i));
  if (call->find_attribute(call->attributes, "table", &a))
    for (uint32_t i = 0; a.type == SINTER_FLOAT32 && i < a.count; ++i) more += ((const float*)a.data)[i];
  for (int64_t i = 0; i < columns; ++i) added[i] = more;
  if (call->find_attribute(call->attributes, "offsets", &a))
    for (uint32_t i = 0; i < a.count && i < columns; ++i) added[i] += ((const float*)a.data)[i];
  if (x->type == SINTER_FLOAT16) { /* the sign alone: no arithmetic */
    for (size_t i = 0; i < x->bytes / 2; ++i)
      ((uint16_t*)call->outputs[0].data)[i] = ((const uint16_t*)x->data)[i] ^ (scale < 0 ? 0x8000 : 0);
    return NULL;
  }
  for (size_t i = 0; i < x->bytes / sizeof(float); ++i)
    ((float*)call->outputs[0].data)[i] = ((const float*)x->data)[i] * scale + added[(int64_t)i % columns];
  return NULL;
}

/* com.test.Repeat(x, count) = x along a new first axis, count times, and its number of elements; count is
 * constant int64. */
static const char* infer_repeat(const sinter_custom_call* call, sinter_custom_shape* results) {
  const sinter_custom_tensor *x = &call->inputs[0], *count = &call->inputs[1];
  if (count->type != SINTER_INT64 || count->bytes != 8) return "count must be one int64";
  if (count->data == NULL) return "count must be constant";
  if (x->rank == SINTER_MAX_RANK) return "x has too many axes";
  results[0].type = x->type;
  results[0].rank = x->rank + 1;
  results[0].dims[0] = *(const int64_t*)count->data;
  memcpy(results[0].dims + 1, x->dims, (size_t)x->rank * sizeof x->dims[0]);
  if (call->output_count > 1) results[1].type = SINTER_INT64;
  return NULL;
}

static const char* compute_repeat(const sinter_custom_call* call) {
  const sinter_custom_tensor* x = &call->inputs[0];
  const int64_t count = *(const int64_t*)call->inputs[1].data;
  if (call->outputs[0].type != SINTER_NONE)
    for (int64_t i = 0; i < call->outputs[0].dims[0]; ++i)
      memcpy((char*)call->outputs[0].data + (size_t)i * x->bytes, x->data, x->bytes);
  if (call->output_count > 1 && call->outputs[1].type != SINTER_NONE) {
    int64_t elements = count;
    for (int32_t i = 0; i < x->rank; ++i) elements *= x->dims[i];
    *(int64_t*)call->outputs[1].data = elements;
  }
  return NULL;
}

static const sinter_custom_op kScaleOp = {FAULT == kAbi ? 99 : SINTER_CUSTOM_OP_ABI,
                                          0,
                                          "com.test",
                                          "Scale",
                                          FAULT == kNewer ? 2 : 1,
                                          1,
                                          2,
                                          1,
                                          1,
                                          sizeof kScale / sizeof kScale[0],
                                          kScale,
                                          FAULT == kMissingRule ? NULL : infer_scale,
                                          workspace_scale,
                                          compute_scale,
                                          NULL};
static const sinter_custom_op kRepeatOp = {
    SINTER_CUSTOM_OP_ABI, 0,    "com.test",     "Repeat", 1, 2, 2, 1, 2, 0, NULL,
    infer_repeat,         NULL, compute_repeat, NULL};

const sinter_custom_op* const* sinter_custom_ops(size_t* count) {
  static const sinter_custom_op* const ops[] = {FAULT == kOther ? &kRepeatOp : &kScaleOp,
                                                FAULT == kTwice ? &kScaleOp : &kRepeatOp};
  *count = FAULT == kOther ? 1 : 2;
  return ops;
}

/* Custom operators: operators that an application adds to Sinter without changing it, for C and C++.
 *
 * An operator is a constant of type sinter_custom_op: its name, the attributes that its nodes have, a rule
 * that gives the types and dims of its results, and a kernel that computes them. The same source file is
 * compiled into a shared object for the converter (`sinter convert --custom-ops lib.so`) and linked into the
 * application (OpenOptions::custom_ops, RunnerOptions::custom_ops, sinter_open_options.custom_ops).
 * docs/application.md has an example.
 *
 * Functions return NULL on success, else a sentence without a full stop that states what is wrong. The text
 * must live as long as the operator. They neither keep pointers of a call nor change its operands, and may
 * be called on several threads at a time. A rule and a kernel depend on nothing but the operands and the
 * attributes: the converter folds and merges nodes. */
#ifndef SINTER_CUSTOM_OP_H_
#define SINTER_CUSTOM_OP_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sinter/element_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the structures below. An operator of another version is refused. */
#define SINTER_CUSTOM_OP_ABI 1
/* The most operands and results of one node together. */
#define SINTER_CUSTOM_MAX_OPERANDS 16

/* ---- Attributes ---- */

/* The kinds of ONNX's attributes; a STRING is text or bytes. */
typedef enum sinter_attribute_kind {
  SINTER_ATTRIBUTE_INT = 1,    /* int64_t */
  SINTER_ATTRIBUTE_FLOAT = 2,  /* float */
  SINTER_ATTRIBUTE_TEXT = 3,   /* terminated, without a zero byte before the end; encoding: not checked */
  SINTER_ATTRIBUTE_BYTES = 4,  /* of any value */
  SINTER_ATTRIBUTE_INTS = 5,   /* int64_t each */
  SINTER_ATTRIBUTE_FLOATS = 6, /* float each */
  SINTER_ATTRIBUTE_TEXTS = 7,  /* texts, one behind the other: sinter_custom_text_of() */
  SINTER_ATTRIBUTE_TENSOR = 8  /* dense, of a sinter_type */
} sinter_attribute_kind;

/* An attribute that an operator takes. Nodes with others, or with another kind, are refused. */
typedef struct sinter_attribute_rule {
  const char* name;
  int32_t kind;     /* a sinter_attribute_kind */
  int32_t required; /* not 0: nodes without it are refused */
} sinter_attribute_rule;

/* An attribute that a node has. */
typedef struct sinter_attribute {
  const char* name;
  int32_t kind;
  uint32_t count;   /* numbers or texts of a list; bytes of text (without its end) or of bytes; elements */
  const void* data; /* aligned to 8 bytes */
  int32_t type;     /* of a tensor: a sinter_type */
  int32_t rank;     /* of a tensor */
  const int64_t* dims;
} sinter_attribute;

/* ---- Calls ---- */

/* An operand or a result: dense, the last axis varies fastest, dims in the order of the ONNX model. An
 * optional operand that a node leaves out, and a result that nothing reads, have type SINTER_NONE. */
typedef struct sinter_custom_tensor {
  int32_t type; /* a sinter_type */
  int32_t rank;
  const int64_t* dims;
  size_t bytes;
  void* data; /* while a kernel runs: never NULL; before: NULL, but see sinter_custom_op.infer */
} sinter_custom_tensor;

/* The type and dims that a rule gives to a result. */
typedef struct sinter_custom_shape {
  int32_t type;
  int32_t rank;
  int64_t dims[SINTER_MAX_RANK];
} sinter_custom_shape;

typedef struct sinter_custom_call {
  const struct sinter_custom_op* op;
  const sinter_custom_tensor* inputs;
  const sinter_custom_tensor* outputs; /* for the rule: type SINTER_NONE where nothing reads the result */
  size_t input_count, output_count;
  void* workspace; /* for the kernel, aligned to 64 bytes: the bytes that op->workspace stated, or more */
  size_t workspace_bytes;
  const void* attributes; /* for find_attribute */
  /* Writes the node's attribute of that name; returns 0 if it has none. */
  int32_t (*find_attribute)(const void* attributes, const char* name, sinter_attribute* found);
} sinter_custom_call;

/* ---- Operators ---- */

typedef struct sinter_custom_op {
  uint32_t abi;       /* SINTER_CUSTOM_OP_ABI */
  uint32_t reserved;  /* 0 */
  const char* domain; /* of the node; not empty, and not ai.onnx */
  const char* name;   /* the node's op_type */
  /* The version of the domain that introduced this meaning of the name, at least 1. A node whose model
   * imports version V of the domain is computed by the operator with the largest since_version up to V. A
   * converted model names it, and runs with an operator of the same since_version only. */
  uint32_t since_version;
  uint32_t min_inputs, max_inputs;   /* operands before min_inputs cannot be left out */
  uint32_t min_outputs, max_outputs; /* at least 1 */
  uint32_t attribute_count;
  const sinter_attribute_rule* attributes;
  /* The rule: fills results[0 .. output_count - 1] from the operands' types and dims and the attributes, or
   * refuses the node. Results have a fixed size, which must not depend on computed numbers. A constant
   * operand of at most SINTER_CUSTOM_RULE_BYTES has data; others have none. Runs when a model is converted
   * and again when it is opened. */
  const char* (*infer)(const sinter_custom_call* call, sinter_custom_shape* results);
  /* Writes the bytes of workspace for the kernel; NULL: none. Operands and results have types and dims, and
   * no data. */
  const char* (*workspace)(const sinter_custom_call* call, size_t* bytes);
  /* The kernel: writes every byte of each result that is read. It allocates nothing. */
  const char* (*compute)(const sinter_custom_call* call);
  const void* user; /* the operator's own */
} sinter_custom_op;

#define SINTER_CUSTOM_RULE_BYTES 1024

/* A shared object for the converter exports a function of this name and type: the operators that it has. */
#define SINTER_CUSTOM_OPS_FUNCTION "sinter_custom_ops"
typedef const sinter_custom_op* const* (*sinter_custom_ops_function)(size_t* count);

/* ---- Reading attributes ---- */

/* Returns the attribute, or `otherwise` where the node has none. Its kind is the one that the operator
 * states. */
static inline int64_t sinter_custom_int(const sinter_custom_call* call, const char* name, int64_t otherwise) {
  sinter_attribute found;
  if (!call->find_attribute(call->attributes, name, &found) || found.kind != SINTER_ATTRIBUTE_INT)
    return otherwise;
  return *(const int64_t*)found.data;
}
static inline float sinter_custom_float(const sinter_custom_call* call, const char* name, float otherwise) {
  sinter_attribute found;
  if (!call->find_attribute(call->attributes, name, &found) || found.kind != SINTER_ATTRIBUTE_FLOAT)
    return otherwise;
  return *(const float*)found.data;
}
static inline const char* sinter_custom_text(const sinter_custom_call* call, const char* name,
                                             const char* otherwise) {
  sinter_attribute found;
  if (!call->find_attribute(call->attributes, name, &found) || found.kind != SINTER_ATTRIBUTE_TEXT)
    return otherwise;
  return (const char*)found.data;
}
/* Returns text i of an attribute of kind SINTER_ATTRIBUTE_TEXTS, i < count. */
static inline const char* sinter_custom_text_of(const sinter_attribute* texts, uint32_t i) {
  const char* at = (const char*)texts->data;
  while (i-- > 0) at += strlen(at) + 1;
  return at;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SINTER_CUSTOM_OP_H_ */

// Attention of few queries: queries in float32, keys and values in a narrower type.
#include "platforms/cuda/kernels/attention/attention_rows.h"

namespace sinter::cuda {

using attention_rows::attend;

SINTER_KERNEL(attention_row_float_float16, AttentionArguments) { attend<float, Float16, 1>(a); }
SINTER_KERNEL(attention_row_float_bfloat16, AttentionArguments) { attend<float, BFloat16, 1>(a); }
SINTER_KERNEL(attention_row_float_float8, AttentionArguments) { attend<float, Float8E4M3FN, 1>(a); }
SINTER_KERNEL(attention_row_float_int8, AttentionArguments) { attend<float, int8_t, 1>(a); }
SINTER_KERNEL(attention_rows_float_float16, AttentionArguments) { attend<float, Float16, kAttentionRows>(a); }
SINTER_KERNEL(attention_rows_float_bfloat16, AttentionArguments) {
  attend<float, BFloat16, kAttentionRows>(a);
}
SINTER_KERNEL(attention_rows_float_float8, AttentionArguments) {
  attend<float, Float8E4M3FN, kAttentionRows>(a);
}
SINTER_KERNEL(attention_rows_float_int8, AttentionArguments) { attend<float, int8_t, kAttentionRows>(a); }

}  // namespace sinter::cuda

// Attention of few queries: queries in 16-bit floats, keys and values in 8 bits.
#include "platforms/cuda/kernels/attention/attention_rows.h"

namespace sinter::cuda {

using attention_rows::attend;

SINTER_KERNEL(attention_row_float16_float8, AttentionArguments) { attend<Float16, Float8E4M3FN, 1>(a); }
SINTER_KERNEL(attention_row_float16_int8, AttentionArguments) { attend<Float16, int8_t, 1>(a); }
SINTER_KERNEL(attention_rows_float16_float8, AttentionArguments) {
  attend<Float16, Float8E4M3FN, kAttentionRows>(a);
}
SINTER_KERNEL(attention_rows_float16_int8, AttentionArguments) { attend<Float16, int8_t, kAttentionRows>(a); }
SINTER_KERNEL(attention_row_bfloat16_float8, AttentionArguments) { attend<BFloat16, Float8E4M3FN, 1>(a); }
SINTER_KERNEL(attention_row_bfloat16_int8, AttentionArguments) { attend<BFloat16, int8_t, 1>(a); }
SINTER_KERNEL(attention_rows_bfloat16_float8, AttentionArguments) {
  attend<BFloat16, Float8E4M3FN, kAttentionRows>(a);
}
SINTER_KERNEL(attention_rows_bfloat16_int8, AttentionArguments) {
  attend<BFloat16, int8_t, kAttentionRows>(a);
}

}  // namespace sinter::cuda

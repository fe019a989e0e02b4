// Attention of few queries: keys and values in the type of the queries.
#include "platforms/cuda/kernels/attention/attention_rows.h"

namespace sinter::cuda {

using attention_rows::attend;

SINTER_KERNEL(attention_row_float, AttentionArguments) { attend<float, float, 1>(a); }
SINTER_KERNEL(attention_row_double, AttentionArguments) { attend<double, double, 1>(a); }
SINTER_KERNEL(attention_row_float16, AttentionArguments) { attend<Float16, Float16, 1>(a); }
SINTER_KERNEL(attention_row_bfloat16, AttentionArguments) { attend<BFloat16, BFloat16, 1>(a); }
SINTER_KERNEL(attention_rows_float, AttentionArguments) { attend<float, float, kAttentionRows>(a); }
SINTER_KERNEL(attention_rows_float16, AttentionArguments) { attend<Float16, Float16, kAttentionRows>(a); }
SINTER_KERNEL(attention_rows_bfloat16, AttentionArguments) { attend<BFloat16, BFloat16, kAttentionRows>(a); }

}  // namespace sinter::cuda

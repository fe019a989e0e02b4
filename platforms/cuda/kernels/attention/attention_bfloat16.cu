// Attention of many queries in bfloat16.
#include "platforms/cuda/kernels/attention/attention_half_tile.h"

namespace sinter::cuda {

// The kernels are named after the largest size of keys.
SINTER_KERNEL(attention_bfloat16_64, AttentionArguments) { half_attention::attend<BFloat16, 64, 64, 64>(a); }
SINTER_KERNEL(attention_bfloat16_128, AttentionArguments) {
  half_attention::attend<BFloat16, 128, 128, 64>(a);
}
SINTER_KERNEL(attention_bfloat16_256, AttentionArguments) {
  half_attention::attend<BFloat16, 256, 128, 32>(a);
}

}  // namespace sinter::cuda

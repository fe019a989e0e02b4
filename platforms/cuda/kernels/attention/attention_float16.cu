// Attention of many queries in float16.
#include "platforms/cuda/kernels/attention/attention_half_tile.h"

namespace sinter::cuda {

// The kernels are named after the largest size of keys.
SINTER_KERNEL(attention_float16_64, AttentionArguments) { half_attention::attend<Float16, 64, 64, 64>(a); }
SINTER_KERNEL(attention_float16_128, AttentionArguments) { half_attention::attend<Float16, 128, 128, 64>(a); }
SINTER_KERNEL(attention_float16_256, AttentionArguments) { half_attention::attend<Float16, 256, 128, 32>(a); }

}  // namespace sinter::cuda

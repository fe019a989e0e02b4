// Attention as com.microsoft's operators define it, and the caches that they keep.
#pragma once

#include "converter/import/lower/attention_parts.h"

namespace sinter::convert {

struct MicrosoftAttention {
  ValueId q, k, v;  // [B, H, S, D], of this call
  // Mask and bias as the operators take them: which keys are kept (kept_keys in microsoft_attention.cc lists
  // the forms), and what is added to the scores.
  ValueId mask = kAbsent, bias = kAbsent;
  int64_t past = 0;  // keys before the first query
  ValueId past_rows =
      kAbsent;  // the same where only a run has it: k and v are then caches with room for more
};

// Puts keys and values behind those of caches [B, H, P, D]. Caches that grow (`count` is kAbsent) become
// [B, H, P + S, D]. Others hold `count` rows (one element), have room for P, and stay as large. The results
// are the new caches.
struct Caches {
  ValueId keys, values;
};
Caches append(NodeLowering& n, MicrosoftAttention& h, Caches past, ValueId count);

// Rotates q and k by their positions, in halves: the angle of pair i of R is position * 10000^(-i / R), where
// 2 R is attribute rotary_embedding_dim, or the whole head.
void rotate_by_position(NodeLowering& n, MicrosoftAttention& h, const Caches& past, ValueId count);

// [B, S, H * D]. Reads the attributes mask_filter_value, unidirectional and scale.
ValueId attend(NodeLowering& n, MicrosoftAttention h);

}  // namespace sinter::convert

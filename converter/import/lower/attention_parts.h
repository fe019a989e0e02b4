// The parts of the attention operators of ONNX and com.microsoft: heads, rotation by position, masks, and
// attention in one pass, or written as products and a softmax where its scores are results too.
//
// B: batch, H: heads of queries, G: heads of keys and values (H a multiple of G), S: queries, T: keys, past
// ones included, D: elements of a head.
#pragma once

#include "converter/import/lowering.h"

namespace sinter::convert {

// [B, S, heads * D] -> [B, heads, S, D]; refuses what cannot be split.
ValueId heads_apart(NodeLowering& n, ValueId v, int64_t heads);
// [B, H, S, D] -> [B, S, H * D]
ValueId heads_together(NodeLowering& n, ValueId v);

// Rotates the first 2 * R elements of each head: x [B, H, S, D], or [B, S, H, D] with the heads on axis 2;
// tables cos and sin [positions, R], positions int32 or int64 [B or 1, S]. kAbsent positions: the tables are
// [B or 1, S, R].
ValueId rotated(NodeLowering& n, ValueId x, ValueId cos, ValueId sin, ValueId positions, bool interleaved,
                int64_t heads_axis = 1);

// The addend of the scores, [B or 1, H or 1, S or 1, T or 1]: -inf hides a key.
class AttentionBias {
 public:
  AttentionBias(NodeLowering& n, DType type, int64_t batch, int64_t queries, int64_t keys)
      : n_(n), type_(type), batch_(batch), queries_(queries), keys_(keys) {}

  // Keys before the first query: one number, or for each batch entry (int64, [B]).
  void set_offset(int64_t constant);
  void set_offset(ValueId per_entry);
  // Query i sees key j if j - (i + offset) <= right, and >= -left.
  void limit(bool has_left, int64_t left, bool has_right, int64_t right);
  // Keys from valid_keys (int64, [B]) on are hidden.
  void limit_to_valid(ValueId valid_keys);
  // A bool mask of what is seen, a bias to add; both may have fewer than T keys, the others are hidden.
  void allow(ValueId mask);
  void add(ValueId bias);
  ValueId sum() const { return sum_; }  // kAbsent: nothing is limited

 private:
  ValueId range(int64_t count, const Dims& dims);
  ValueId padded(ValueId mask);
  NodeLowering& n_;
  DType type_;
  int64_t batch_, queries_, keys_;
  ValueId offset_ = kAbsent, sum_ = kAbsent;
};

// Values of the computation that some operator gives as an output, each [B, H, S, T].
struct AttentionScores {
  ValueId scaled, capped, biased, weights;
};
struct AttentionForm {
  double scale = 1, softcap = 0;
  ValueId bias = kAbsent;  // AttentionBias::sum
  // [H]: a score of each head that takes part in the softmax, but has no value.
  ValueId sink = kAbsent;
  bool in_float64 = false;  // the softmax
};
// Attention as the operation of this name (schemas/ops.def) computes it, in one pass.
struct OnePassForm : AttentionForm {
  // Query i attends to the keys j <= i + (length - S), and of these the last `window` where that is above 0.
  bool causal = false;
  int64_t window = 0;
  ValueId lengths = kAbsent;  // int64 [B]: the keys that exist; kAbsent: all T
};
// q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] -> [B, H, S, E]. A query that sees no key gives zeros.
ValueId attention(NodeLowering& n, ValueId q, ValueId k, ValueId v, const AttentionForm& form,
                  AttentionScores* scores = nullptr);
// Returns whether one pass gives the softmax and the cap as the form has them.
bool fits_one_pass(const AttentionForm& form);
// The same in one pass; the form fits it. k and v may be of the narrow types of
// runtime/core/attention_rows.h, numbers as they are.
ValueId one_pass_attention(NodeLowering& n, ValueId q, ValueId k, ValueId v, const OnePassForm& form);

// The cache with these rows along `axis` from at[b] on, for each entry b of the batch; places that are known
// and outside are refused.
ValueId written_to_cache(NodeLowering& n, ValueId cache, ValueId rows, ValueId at, int64_t axis);

// New rows [B, H, tokens, D] behind those of a cache that --max-context keeps: they are written into the room
// that it has. kUnknown: refused, for they do not fit.
ValueId appended_to_cache(NodeLowering& n, ValueId cache, ValueId rows);

}  // namespace sinter::convert

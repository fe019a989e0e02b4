// The common parts of Attention's kernels: the call's sizes, the keys that a query attends to, its softmax,
// and the functions of vectors, each of which is compiled for every instruction set (attention.cc).
#pragma once

#include "platforms/simd/table.h"
#include "runtime/core/attention_rows.h"

namespace sinter::simd {

// The operands behind the queries, keys and values.
enum AttentionOperand : size_t { kBias = 3, kLengths, kSinks, kKeyScales, kValueScales };

struct AttentionExtent {
  int64_t batch, heads, groups, queries, keys, key_size, value_size;

  explicit AttentionExtent(const OpCall& call)
      : batch(call.in(0).dims[0]),
        heads(call.in(0).dims[1]),
        groups(call.in(1).dims[1]),
        queries(call.in(0).dims[2]),
        keys(call.in(1).dims[2]),
        key_size(call.in(0).dims[3]),
        value_size(row_elements(call.in(2).dtype, call.in(2).dims[3])) {}
  // Returns the number of query rows that read the keys and values of one group. They are neighbours: row r
  // is query r % queries of the group's head r / queries.
  int64_t rows() const { return groups > 0 ? heads / groups * queries : 0; }
};

struct KeyRange {
  int64_t begin, end;
};

// Returns the keys that query `query` of a sequence of `length` keys attends to.
inline KeyRange attended_keys(const AttentionAttrs& a, const AttentionExtent& e, int64_t length,
                              int64_t query) {
  if (a.causal == 0) return {0, length};
  const int64_t end = std::clamp<int64_t>(query + (length - e.queries) + 1, 0, length);
  return {a.window > 0 ? std::max<int64_t>(end - a.window, 0) : 0, end};
}
inline int64_t length_of(const OpCall& call, const AttentionExtent& e, int64_t batch) {
  return call.has_input(kLengths) ? call.in(kLengths).as<const int64_t>()[batch] : e.keys;
}

// The bias of one query; null: none. `step` elements from key to key: 1, or 0 for one number.
struct BiasRow {
  const float* first = nullptr;
  int64_t step = 0;
};
inline BiasRow bias_row(const OpCall& call, int64_t batch, int64_t head, int64_t query) {
  if (!call.has_input(kBias)) return {};
  const TensorView& bias = call.in(kBias);
  const int64_t at[] = {batch, head, query};
  BiasRow row{bias.as<const float>(), 0};
  int64_t size = 1;
  for (int own = bias.rank - 1, axis = 3; own >= 0; --own, --axis) {
    if (axis == 3 && bias.dims[own] != 1) row.step = 1;
    if (axis < 3 && bias.dims[own] != 1) row.first += at[axis] * size;
    size *= bias.dims[own];
  }
  return row;
}

// The softmax of one query over the keys that have been read so far: weights are exp(score - top), and `sum`
// is their sum. `seen` is whether a key took part, whatever its score.
struct SoftmaxState {
  float top = -HUGE_VALF, sum = 0;
  bool seen = false;
};
// Turns products of a query with keys into weights for keys begin .. end - 1 of `count`, and zeros for the
// others, which the query does not attend to. Returns the factor for the sums of earlier keys; that of the
// state is multiplied already.
float add_weights(const AttentionAttrs& a, float* scores, KeyRange keys, int64_t count, BiasRow bias,
                  SoftmaxState* state);

// The last step for a query whose softmax has this state: the factor of its sums, or zeros in their place.
struct AttentionEnd {
  float factor;
  bool zeros;
};
AttentionEnd attention_end(const OpCall& call, int64_t head, SoftmaxState state);

// Widens n elements to float32, from float32, float16, bfloat16, float8e4m3fn, int8, or pairs of 4 bits
// (holds_pairs; n is even).
void widen(DType type, const std::byte* from, int64_t n, float* to);
// Moves the even ones of the `size` elements of a row before the odd ones, and back.
void split_pairs(const float* from, int64_t size, float* to);
void merge_pairs(const float* from, int64_t size, float* to);
// Writes products[r * stride + j] of query row r (of `rows`, dense) with row j (of `count`) of keys of a
// type. Where keys or values are pairs, queries or sums are split (split_pairs).
void multiply_keys(DType type, const float* queries, int64_t rows, int64_t size, const std::byte* keys,
                   int64_t count, float* products, int64_t stride);
// Adds to sums[r * size + d] the sum over j of weights[r * stride + j] * values[j * size + d].
void add_values(DType type, const float* weights, int64_t rows, int64_t stride, const std::byte* values,
                int64_t count, int64_t size, float* sums);
// Multiplies numbers[j] by scales[j]; where `hides`, a number of 0 stays so.
void scale_keys(float* numbers, const float* scales, int64_t count, bool hides);

// Returns the weighted sum of one element of the values, which are rows of `size` elements from key 0 on. A
// key of weight 0 takes no part where `hides`, so that its value need not be finite.
float add_visible(DType type, const float* weights, KeyRange keys, const std::byte* values, int64_t size,
                  int64_t element, bool hides);

// Returns whether keys and values are read once, in place, in ranges of keys (few_queries.cc), instead of in
// pieces that are packed for the matrix product (many_queries.cc).
bool are_few_queries(const AttentionExtent& e);
[[nodiscard]] bool few_queries_workspace(const AttentionExtent& e, int threads, int64_t* floats);
void attend_few_queries(const OpCall& call, const AttentionExtent& e, RunContext& context);

}  // namespace sinter::simd

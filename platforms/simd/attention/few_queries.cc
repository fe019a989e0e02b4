// Attention of few queries, as of a decoded token: bound by reading the keys and values, each of which is
// read once, for all the heads that share it. The keys of a group are cut into ranges, which are read in any
// order on any threads; the ranges' softmaxes are joined in order. The ranges depend on the operands' shapes
// only.
#include <cmath>

#include "platforms/simd/attention/attention.h"
#include "runtime/core/op_enums.h"

namespace sinter::simd {
namespace {

// The number of query rows that are computed together.
constexpr int64_t kRows = 8;
// The keys of a range, unless that gives more ranges than kMostRanges.
constexpr int64_t kRangeKeys = 256, kMostRanges = 32;
constexpr int64_t kStateFloats = sizeof(SoftmaxState) / sizeof(float);
static_assert(sizeof(SoftmaxState) % sizeof(float) == 0 && alignof(SoftmaxState) <= alignof(float));

int64_t range_keys(const AttentionExtent& e) {
  return std::max(kRangeKeys, divide_up(divide_up(e.keys, kMostRanges), kRangeKeys) * kRangeKeys);
}
int64_t range_count(const AttentionExtent& e) { return divide_up(e.keys, range_keys(e)); }

// The rows of keys or values of one group.
struct GroupRows {
  DType type;
  int64_t bytes;  // of a row
  const std::byte* data;
  const float* scales;  // null: none

  GroupRows(const OpCall& call, size_t operand, size_t scales_operand, int64_t group)
      : type(call.in(operand).dtype),
        bytes(call.in(operand).dims[3] * static_cast<int64_t>(byte_width(type))) {
    const int64_t first = group * call.in(operand).dims[2];
    data = call.in(operand).data + first * bytes;
    scales = call.has_input(scales_operand) ? call.in(scales_operand).as<const float>() + first : nullptr;
  }
  const std::byte* row(int64_t j) const { return data + j * bytes; }
};

// Counts the floats of a thread: scores [kRows, range_keys], and kRows rows of queries or sums.
[[nodiscard]] bool slot_floats(const AttentionExtent& e, int64_t* floats) {
  return checked_mul(kRows, std::max(e.key_size, e.value_size), floats) &&
         checked_add(*floats, kRows * range_keys(e), floats);
}

// Computes rows first .. first + n - 1 of a group with one range of keys: sums [n, value_size] and states.
void attend_range(const OpCall& call, const AttentionExtent& e, int64_t group, KeyRange range, int64_t first,
                  int64_t n, float* scores, float* room, float* sums, SoftmaxState* states) {
  const auto& a = call.attrs<AttentionAttrs>();
  const int64_t batch = group / e.groups, length = length_of(call, e, batch);
  const auto attended = [&](int64_t r) {
    const KeyRange keys = attended_keys(a, e, length, (first + r) % e.queries);
    return KeyRange{std::clamp(keys.begin, range.begin, range.end),
                    std::clamp(keys.end, range.begin, range.end)};
  };
  KeyRange read{range.end, range.begin};
  for (int64_t r = 0; r < n; ++r) {
    const KeyRange keys = attended(r);
    if (keys.begin < keys.end) read = {std::min(read.begin, keys.begin), std::max(read.end, keys.end)};
  }
  for (int64_t r = 0; r < n; ++r) states[r] = {};
  std::fill_n(sums, n * e.value_size, 0.0f);
  const int64_t count = read.end - read.begin;
  if (count <= 0) return;
  const GroupRows keys(call, 1, kKeyScales, group), values(call, 2, kValueScales, group);
  const float* q = call.in(0).as<const float>() + (group * e.rows() + first) * e.key_size;
  if (holds_pairs(keys.type)) {
    for (int64_t r = 0; r < n; ++r) split_pairs(q + r * e.key_size, e.key_size, room + r * e.key_size);
    q = room;
  }
  multiply_keys(keys.type, q, n, e.key_size, keys.row(read.begin), count, scores, count);
  const bool hides = static_cast<AttentionRule>(a.rule) == AttentionRule::kHides;
  const auto of_read = [&](int64_t r) {
    const KeyRange own = attended(r);
    return KeyRange{std::clamp<int64_t>(own.begin - read.begin, 0, count),
                    std::clamp<int64_t>(own.end - read.begin, 0, count)};
  };
  for (int64_t r = 0; r < n; ++r) {
    float* row = scores + r * count;
    if (keys.scales != nullptr) scale_keys(row, keys.scales + read.begin, count, false);
    const int64_t head = group % e.groups * (e.heads / e.groups) + (first + r) / e.queries;
    BiasRow bias = bias_row(call, batch, head, (first + r) % e.queries);
    if (bias.first != nullptr) bias.first += read.begin * bias.step;
    add_weights(a, row, of_read(r), count, bias, &states[r]);
    if (values.scales != nullptr) scale_keys(row, values.scales + read.begin, count, hides);
  }
  const bool in_pairs = holds_pairs(values.type);
  if (in_pairs) std::fill_n(room, n * e.value_size, 0.0f);
  add_values(values.type, scores, n, count, values.row(read.begin), count, e.value_size,
             in_pairs ? room : sums);
  for (int64_t r = 0; r < n && in_pairs; ++r)
    merge_pairs(room + r * e.value_size, e.value_size, sums + r * e.value_size);
  for (int64_t r = 0; r < n; ++r)
    for (int64_t d = 0; d < e.value_size; ++d) {
      float& sum = sums[r * e.value_size + d];
      // Hidden keys were multiplied by 0, which gives NaN where their values are not finite.
      if (!std::isfinite(sum))
        sum = add_visible(values.type, scores + r * count, of_read(r), values.row(read.begin), e.value_size,
                          d, hides);
    }
}

// Computes row r of a group, from the sums and states of all ranges, `sums_step` and `states_step` apart.
void join_ranges(const OpCall& call, const AttentionExtent& e, int64_t group, int64_t r, const float* sums,
                 int64_t sums_step, const SoftmaxState* states, int64_t states_step) {
  const int64_t ranges = range_count(e);
  float* y = call.out(0).as<float>() + (group * e.rows() + r) * e.value_size;
  SoftmaxState all;
  for (int64_t i = 0; i < ranges; ++i) {
    all.top = std::max(all.top, states[i * states_step].top);
    all.seen |= states[i * states_step].seen;
  }
  std::fill_n(y, e.value_size, 0.0f);
  for (int64_t i = 0; i < ranges; ++i) {
    const SoftmaxState& own = states[i * states_step];
    if (!own.seen) continue;
    // Without a score above -inf, only NaN has a sum.
    const float factor = own.top == all.top || own.top == -HUGE_VALF ? 1.0f : std::exp(own.top - all.top);
    all.sum += own.sum * factor;
    const float* from = sums + i * sums_step;
    for (int64_t d = 0; d < e.value_size; ++d) y[d] += from[d] * factor;
  }
  const int64_t head = group % e.groups * (e.heads / e.groups) + r / e.queries;
  const AttentionEnd end = attention_end(call, head, all);
  for (int64_t d = 0; d < e.value_size; ++d) y[d] = end.zeros ? 0.0f : y[d] * end.factor;
}

}  // namespace

// Packing pays for itself where each key is multiplied with many queries.
bool are_few_queries(const AttentionExtent& e) { return e.queries <= 4 || e.rows() <= 8; }

bool few_queries_workspace(const AttentionExtent& e, int threads, int64_t* floats) {
  int64_t parts = 0, slots = 0;
  return checked_mul(e.batch * e.groups, e.rows(), &parts) && checked_mul(parts, range_count(e), &parts) &&
         checked_mul(parts, e.value_size + kStateFloats, &parts) && slot_floats(e, &slots) &&
         checked_mul(std::max<int64_t>(threads, 1), slots, &slots) && checked_add(parts, slots, floats);
}

void attend_few_queries(const OpCall& call, const AttentionExtent& e, RunContext& context) {
  const int64_t rows = e.rows(), groups = e.batch * e.groups, ranges = range_count(e), keys = range_keys(e);
  // The parts: [group, range, row, value_size], [group, range, row], and scores and room for each slot.
  auto* sums = reinterpret_cast<float*>(context.workspace.data());
  auto* states = reinterpret_cast<SoftmaxState*>(sums + groups * ranges * rows * e.value_size);
  auto* free = reinterpret_cast<float*>(states + groups * ranges * rows);
  int64_t of_slot = 0;
  if (!slot_floats(e, &of_slot)) return;  // it had no workspace
  int64_t live = 0;                       // ranges that a sequence reaches
  for (int64_t b = 0; b < e.batch; ++b) live = std::max(live, divide_up(length_of(call, e, b), keys));
  const int64_t units = groups * live;
  const int64_t slots = std::min(units, std::max<int64_t>(threads_of(context.threads), 1));
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t group = unit / live, range = unit % live, at = (group * ranges + range) * rows;
      for (int64_t r = 0; r < rows; r += kRows)
        attend_range(call, e, group, {range * keys, std::min((range + 1) * keys, e.keys)}, r,
                     std::min(kRows, rows - r), free + slot * of_slot, free + slot * of_slot + kRows * keys,
                     sums + (at + r) * e.value_size, states + at + r);
    }
  });
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t range = live; range < ranges; ++range)
      std::fill_n(states + (group * ranges + range) * rows, rows, SoftmaxState{});
  parallel_for(context.threads, groups * rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / rows, r = i % rows, at = group * ranges * rows + r;
      join_ranges(call, e, group, r, sums + at * e.value_size, rows * e.value_size, states + at, rows);
    }
  });
}

}  // namespace sinter::simd

// LinearAttention: token by token, a state [D, E] of each key head is decayed, updated and read. All sums are
// in double. A state is float32 where queries have 16 bits.
#include <cmath>

#include "runtime/core/op_enums.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

enum LinearOperand : size_t { kQuery, kKey, kValue, kState, kDecay, kBeta };

struct LinearExtent {
  int64_t batch, tokens, queries, heads, key_size, value_size;

  // Returns the number of elements in the states of all heads.
  int64_t state_size() const { return batch * heads * key_size * value_size; }
};
LinearExtent linear_extent(const OpCall& call) {
  const TensorView &q = call.in(kQuery), &v = call.in(kValue);
  return {q.dims[0], q.dims[1], q.dims[2], v.dims[2], q.dims[3], v.dims[3]};
}

bool decays(const LinearAttentionAttrs& a) {
  const auto rule = static_cast<LinearAttentionRule>(a.rule);
  return rule == LinearAttentionRule::kGated || rule == LinearAttentionRule::kGatedDelta;
}
bool corrects(const LinearAttentionAttrs& a) {
  const auto rule = static_cast<LinearAttentionRule>(a.rule);
  return rule == LinearAttentionRule::kDelta || rule == LinearAttentionRule::kGatedDelta;
}

// Checks that operand `i` is [batch, tokens, heads (-1: any), one of two lengths].
Status check_rows(const OpCall& call, size_t i, const LinearExtent& e, int64_t heads, int64_t size,
                  int64_t other) {
  const TensorView& t = call.in(i);
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, kQuery));
  SINTER_RETURN_UNLESS(t.rank == 4 && t.dims[0] == e.batch && t.dims[1] == e.tokens && t.dims[2] == heads &&
                           (t.dims[3] == size || t.dims[3] == other),
                       invalid("it is not [batch, tokens, %a, %b]", heads, size).of_input(i));
  return ok_status();
}

Status infer_linear_attention(OpCall& call) {
  const auto& a = call.attrs<LinearAttentionAttrs>();
  SINTER_RETURN_IF_ERROR(check_code(a.rule, 4));
  SINTER_RETURN_UNLESS(a.window >= 0, invalid("window %a is negative", a.window));
  SINTER_RETURN_IF_ERROR(check_dtype(call, kQuery, is_compute_float(call.in(kQuery).dtype)));
  for (const size_t i : {kQuery, kKey, kValue}) {
    SINTER_RETURN_UNLESS(call.in(i).rank == 4, invalid("its rank is %a, not 4", call.in(i).rank).of_input(i));
    SINTER_RETURN_IF_ERROR(check_dims(call.in(i)));
  }
  const LinearExtent e = linear_extent(call);
  SINTER_RETURN_UNLESS(
      e.heads >= 1 && e.queries >= 1 && (e.queries % e.heads == 0 || e.heads % e.queries == 0),
      invalid("%a query heads and %b value heads are not multiples of each other", e.queries, e.heads));
  SINTER_RETURN_IF_ERROR(check_rows(call, kKey, e, e.heads, e.key_size, e.key_size));
  SINTER_RETURN_IF_ERROR(check_rows(call, kValue, e, e.heads, e.value_size, e.value_size));
  const DType state = computed_dtype(call.in(kQuery).dtype);
  const int64_t dims[] = {a.window, e.batch, e.heads, e.key_size, e.value_size};
  SINTER_RETURN_IF_ERROR(check_dims(DType::kFloat64, dims));
  const auto one = std::span(dims).subspan(1);
  SINTER_RETURN_IF_ERROR(check_dims(DType::kFloat64, one));
  if (call.has_input(kState)) {
    const TensorView& s = call.in(kState);
    SINTER_RETURN_IF_ERROR(check_dtype(call, kState, s.dtype == state));
    SINTER_RETURN_UNLESS(
        std::equal(one.begin(), one.end(), s.shape().begin(), s.shape().end()),
        invalid("the state is not [batch, heads, %a, %b]", e.key_size, e.value_size).of_input(kState));
  }
  SINTER_RETURN_UNLESS(decays(a) == call.has_input(kDecay),
                       invalid("rule %a and the operand decay do not belong together", a.rule));
  SINTER_RETURN_UNLESS(corrects(a) == call.has_input(kBeta),
                       invalid("rule %a and the operand beta do not belong together", a.rule));
  if (call.has_input(kDecay)) SINTER_RETURN_IF_ERROR(check_rows(call, kDecay, e, e.heads, e.key_size, 1));
  if (call.has_input(kBeta)) {
    const TensorView& beta = call.in(kBeta);
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, kBeta, kQuery));
    SINTER_RETURN_UNLESS(
        beta.rank == 3 && beta.dims[0] == e.batch && beta.dims[1] == e.tokens &&
            (beta.dims[2] == e.heads || beta.dims[2] == 1),
        invalid("beta is not [batch, tokens, %a] or [batch, tokens, 1]", e.heads).of_input(kBeta));
  }
  SINTER_RETURN_IF_ERROR(give_output(call, 1, state, a.window > 0 ? std::span(dims) : one));
  const int64_t results[] = {e.batch, e.tokens, std::max(e.queries, e.heads), e.value_size};
  return give_output(call, 0, call.in(kQuery).dtype, results);
}

// Counts the bytes of a thread: a state [key_size, value_size] and a token's addition to it [value_size].
bool scratch(const LinearExtent& e, size_t* bytes) {
  int64_t n = 0;
  if (!checked_mul(e.key_size + 1, e.value_size, &n) || !checked_mul<int64_t>(n, sizeof(double), &n) ||
      !checked_add<int64_t>(n, kBufferAlignment, &n))
    return false;
  *bytes = static_cast<size_t>(n) / kBufferAlignment * kBufferAlignment;
  return true;
}

Status linear_attention_workspace(const OpCall& call, int threads, size_t* bytes) {
  size_t each = 0;
  SINTER_RETURN_UNLESS(
      scratch(linear_extent(call), &each) && checked_mul<size_t>(each, std::max(threads, 1), bytes),
      too_much_workspace());
  return ok_status();
}

// Computes one head of one sequence. `state` is in double, `added` has room for a value.
template <class T>
void attend(const OpCall& call, const LinearExtent& e, int64_t batch, int64_t head, double* state) {
  using S = Computed<T>;
  const auto& a = call.attrs<LinearAttentionAttrs>();
  const int64_t k_size = e.key_size, v_size = e.value_size, size = k_size * v_size,
                results = std::max(e.queries, e.heads), at_head = (batch * e.heads + head) * size;
  double* added = state + size;
  const S* old = call.has_input(kState) ? call.in(kState).as<S>() + at_head : nullptr;
  S* next = call.has_output(1) ? call.out(1).as<S>() + at_head : nullptr;
  for (int64_t i = 0; i < size; ++i) state[i] = old != nullptr ? static_cast<double>(old[i]) : 0;
  // The state after token t is kept in slot t - first of the window.
  const int64_t slots = std::max<int64_t>(a.window, 1), first = e.tokens - slots;
  const auto keep = [&](int64_t slot, bool zeros) {
    if (next == nullptr) return;
    S* to = next + slot * e.state_size();
    for (int64_t i = 0; i < size; ++i) to[i] = zeros ? S{0} : static_cast<S>(state[i]);
  };
  if (a.window == 0 && e.tokens == 0) keep(0, false);
  if (a.window > 0)
    for (int64_t slot = 0; slot < std::min(-first, slots); ++slot) keep(slot, true);
  for (int64_t t = 0; t < e.tokens; ++t) {
    const int64_t row = batch * e.tokens + t;
    const T* k = call.in(kKey).as<T>() + (row * e.heads + head) * k_size;
    const T* v = call.in(kValue).as<T>() + (row * e.heads + head) * v_size;
    if (call.has_input(kDecay)) {
      const int64_t each = call.in(kDecay).dims[3];
      const T* decay = call.in(kDecay).as<T>() + (row * e.heads + head) * each;
      for (int64_t d = 0; d < k_size; ++d) {
        const double factor = std::exp(static_cast<double>(decay[each == 1 ? 0 : d]));
        for (int64_t j = 0; j < v_size; ++j) state[d * v_size + j] *= factor;
      }
    }
    for (int64_t j = 0; j < v_size; ++j) added[j] = static_cast<double>(v[j]);
    if (call.has_input(kBeta)) {
      const int64_t each = call.in(kBeta).dims[2];
      const auto beta = static_cast<double>(call.in(kBeta).as<T>()[each == 1 ? row : row * e.heads + head]);
      for (int64_t d = 0; d < k_size; ++d)
        for (int64_t j = 0; j < v_size; ++j) added[j] -= static_cast<double>(k[d]) * state[d * v_size + j];
      for (int64_t j = 0; j < v_size; ++j) added[j] *= beta;
    }
    for (int64_t d = 0; d < k_size; ++d)
      for (int64_t j = 0; j < v_size; ++j) state[d * v_size + j] += static_cast<double>(k[d]) * added[j];
    if (t >= first) keep(t - first, false);
    // The query heads of this head, or the head that it shares with others.
    const int64_t group = std::max<int64_t>(e.queries / e.heads, 1);
    for (int64_t i = 0; i < group && call.has_output(0); ++i) {
      const int64_t result = head * group + i,
                    query = e.queries >= e.heads ? result : head / (e.heads / e.queries);
      const T* q = call.in(kQuery).as<T>() + (row * e.queries + query) * k_size;
      T* y = call.out(0).as<T>() + (row * results + result) * v_size;
      for (int64_t j = 0; j < v_size; ++j) added[j] = 0;
      for (int64_t d = 0; d < k_size; ++d)
        for (int64_t j = 0; j < v_size; ++j) added[j] += static_cast<double>(q[d]) * state[d * v_size + j];
      for (int64_t j = 0; j < v_size; ++j) y[j] = static_cast<T>(a.scale * added[j]);
    }
  }
}

Status run_linear_attention(const OpCall& call, RunContext& context) {
  const LinearExtent e = linear_extent(call);
  const int64_t units = e.batch * e.heads;
  size_t each = 0;
  if (units == 0) return ok_status();
  SINTER_RETURN_UNLESS(scratch(e, &each) && context.workspace.size() >= each,
                       error(Code::kOutOfMemory, "the workspace is too small"));
  int64_t slots = std::min(units, threads_of(context.threads));
  if (each > 0) slots = std::min(slots, static_cast<int64_t>(context.workspace.size() / each));
  return for_float_or_half(call.in(kQuery).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
      auto* state = reinterpret_cast<double*>(context.workspace.data() + slot * static_cast<int64_t>(each));
      for (int64_t unit = begin; unit < end; ++unit)
        attend<T>(call, e, unit / e.heads, unit % e.heads, state);
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kLinearAttentionKernel = reference_kernel(
    {Op::kLinearAttention, infer_linear_attention, linear_attention_workspace, run_linear_attention});

}  // namespace sinter

// Attention: per query, scores of the keys it may see, softmax, weighted sum of the values; all in double. In
// 16 bits are the queries, keys, values and results; the bias is float32 then, as a score is.
//
// Rule kHides: a key takes part if causality allows it and its bias is not -inf. A query without any such key
// gives zeros (as ONNX demands since opset 24), whatever the scores are. The other rules do what products,
// scale, bias and softmax written as operations of their own do, and round where those do: a bias of -1e9
// leaves no trace of the score in float32.
#include <cmath>

#include "runtime/core/op_enums.h"
#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

struct Extent {
  int64_t batch, heads, groups, queries, keys, key_size, value_size;
};

Extent extent(const OpCall& call) {
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2);
  return {q.dims[0], q.dims[1], k.dims[1], q.dims[2], k.dims[2], q.dims[3], v.dims[3]};
}

Status infer_call(OpCall& call) {
  const auto& a = call.attrs<AttentionAttrs>();
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2);
  SINTER_RETURN_IF_ERROR(check_code(a.causal, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.rule, 4));
  for (size_t i = 0; i < 3; ++i) {
    SINTER_RETURN_UNLESS(call.in(i).rank == 4, invalid("its rank is %a, not 4", call.in(i).rank).of_input(i));
    SINTER_RETURN_IF_ERROR(check_dims(call.in(i)));
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, 0));
  }
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(q.dtype)));
  const Extent e = extent(call);
  SINTER_RETURN_UNLESS(k.dims[0] == e.batch && v.dims[0] == e.batch,
                       invalid("queries, keys and values differ in batch"));
  SINTER_RETURN_UNLESS(v.dims[1] == e.groups && v.dims[2] == e.keys,
                       invalid("keys and values differ in heads or length"));
  SINTER_RETURN_UNLESS(k.dims[3] == e.key_size,
                       invalid("a key has %a values, a query %b", k.dims[3], e.key_size));
  SINTER_RETURN_UNLESS(e.groups >= 1 ? e.heads % e.groups == 0 : e.heads == 0,
                       invalid("%a query heads are not a multiple of %b key heads", e.heads, e.groups));
  if (call.has_input(3)) {
    SINTER_RETURN_IF_ERROR(check_computed_dtype(call, 3));
    const int64_t scores[] = {e.batch, e.heads, e.queries, e.keys};
    SINTER_RETURN_IF_ERROR(check_dims(call.in(3)));
    SINTER_RETURN_IF_ERROR(check_broadcasts_to(call.in(3).shape(), scores));
  }
  const int64_t dims[] = {e.batch, e.heads, e.queries, e.value_size};
  return give_output(call, 0, q.dtype, dims);
}

// Per thread: scores [keys], sums [value_size], query [key_size].
bool scratch(const Extent& e, size_t* bytes) {
  int64_t n = 0;
  if (!checked_add(e.keys, e.value_size, &n) || !checked_add(n, e.key_size, &n) ||
      !checked_mul<int64_t>(n, sizeof(double), &n) || !checked_add<int64_t>(n, kBufferAlignment, &n))
    return false;
  *bytes = static_cast<size_t>(n) / kBufferAlignment * kBufferAlignment;
  return true;
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  size_t each = 0;
  SINTER_RETURN_UNLESS(scratch(extent(call), &each) && checked_mul<size_t>(each, std::max(threads, 1), bytes),
                       too_much_workspace());
  return ok_status();
}

template <class T>
void attend(const OpCall& call, const Extent& e, int64_t row, double* scores) {
  using Score = Computed<T>;
  const auto& a = call.attrs<AttentionAttrs>();
  const int64_t query = row % e.queries, head = row / e.queries % e.heads,
                batch = row / (e.queries * e.heads);
  const int64_t matrix = batch * e.groups + head / (e.heads / e.groups);
  const T* q = call.in(0).as<T>() + row * e.key_size;
  const T* k = call.in(1).as<T>() + matrix * e.keys * e.key_size;
  const T* v = call.in(2).as<T>() + matrix * e.keys * e.value_size;
  T* y = call.out(0).as<T>() + row * e.value_size;
  double* sums = scores + e.keys;
  double* wide = sums + e.value_size;
  for (int64_t d = 0; d < e.key_size; ++d) wide[d] = static_cast<double>(q[d]);
  for (int64_t d = 0; d < e.value_size; ++d) sums[d] = 0;

  const std::byte* bias = nullptr;
  int64_t bias_step = 0;
  if (call.has_input(3)) {
    const TensorView& b = call.in(3);
    bias = b.data + batch * broadcast_stride(b, 4, 0) + head * broadcast_stride(b, 4, 1) +
           query * broadcast_stride(b, 4, 2);
    bias_step = broadcast_stride(b, 4, 3);
  }
  const int64_t visible =
      a.causal ? std::clamp<int64_t>(query + (e.keys - e.queries) + 1, 0, e.keys) : e.keys;
  const auto rule = static_cast<AttentionRule>(a.rule);
  const bool hides = rule == AttentionRule::kHides;
  double top = -kInfinity;
  bool any = !hides;
  for (int64_t j = 0; j < visible; ++j) {
    const Score extra = bias != nullptr ? load<Score>(bias + j * bias_step) : Score{0};
    const double product = dot(wide, k + j * e.key_size, e.key_size);
    if (hides) {
      const bool hidden = extra == -std::numeric_limits<Score>::infinity();
      any |= !hidden;
      scores[j] = hidden ? -kInfinity : a.scale * product + static_cast<double>(extra);
    } else {
      const Score score = static_cast<Score>(product) * static_cast<Score>(a.scale);
      const bool replaced = rule == AttentionRule::kReplaces && extra != Score{0};
      scores[j] = static_cast<double>(replaced ? extra : static_cast<Score>(score + extra));
    }
    if (!(scores[j] <= top)) top = scores[j];
  }
  double total = 0;
  for (int64_t j = 0; any && j < visible; ++j) {
    const double weight = scores[j] == -kInfinity && top != -kInfinity ? 0.0 : std::exp(scores[j] - top);
    if (weight == 0 && hides) continue;
    total += weight;
    for (int64_t d = 0; d < e.value_size; ++d)
      sums[d] += weight * static_cast<double>(v[j * e.value_size + d]);
  }
  if (rule == AttentionRule::kAddsNanToZero && total != total) any = false;
  for (int64_t d = 0; d < e.value_size; ++d) y[d] = any ? static_cast<T>(sums[d] / total) : T(0);
}

Status run(const OpCall& call, RunContext& context) {
  const Extent e = extent(call);
  size_t each = 0;
  const int64_t rows = call.out(0).size() == 0 ? 0 : e.batch * e.heads * e.queries;
  if (rows == 0) return ok_status();
  SINTER_RETURN_UNLESS(scratch(e, &each) && context.workspace.size() >= each,
                       error(Code::kOutOfMemory, "the workspace is too small"));
  const int64_t threads = threads_of(context.threads);
  const int64_t most = each == 0 ? threads : static_cast<int64_t>(context.workspace.size() / each);
  const int64_t slots = std::min(rows, std::clamp<int64_t>(threads, 1, most));
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_slots(context.threads, slots, rows, [&](int64_t slot, int64_t begin, int64_t end) {
      auto* scores = reinterpret_cast<double*>(context.workspace.data() + slot * static_cast<int64_t>(each));
      for (int64_t row = begin; row < end; ++row) attend<T>(call, e, row, scores);
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kAttentionKernel = reference_kernel({Op::kAttention, infer_call, workspace, run});

}  // namespace sinter

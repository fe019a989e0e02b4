// Attention: per query, scores of the keys that it attends to, softmax, weighted sum of the values; all in
// double. If queries, keys, values and results have 16 bits, the bias is float32, as a score is.
//
// Rule kHides: a key takes part if causality allows it and its bias is not -inf. A query without any such key
// gives zeros (as ONNX demands since opset 24), whatever the scores are. The other rules do what products,
// scale, bias and softmax written as operations of their own do, and round where those do: a bias of -1e9
// leaves no trace of the score in float32.
//
// Where sequences have lengths, a query without any key gives zeros by every rule, as products with no rows
// do.
//
// Keys and values that are narrower than the queries are widened row by row.
#include <cmath>

#include "runtime/core/attention_rows.h"
#include "runtime/core/op_enums.h"
#include "runtime/kernels/convert.h"
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
  return {q.dims[0], q.dims[1], k.dims[1], q.dims[2], k.dims[2], q.dims[3], row_elements(v.dtype, v.dims[3])};
}

// The operands behind the queries, keys and values.
enum Operand : size_t { kBias = 3, kLengths, kSinks, kKeyScales, kValueScales };

// Checks keys (operand 1) or values (2), and the scales of their rows.
Status check_rows(const OpCall& call, size_t i, size_t scales) {
  const TensorView& rows = call.in(i);
  if (!is_narrow(rows.dtype, call.in(0).dtype)) SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, 0));
  if (!call.has_input(scales)) return ok_status();
  SINTER_RETURN_UNLESS(rows.dtype == DType::kInt8 || holds_pairs(rows.dtype),
                       invalid("rows of floats have no scales").of_input(scales));
  SINTER_RETURN_IF_ERROR(check_dtype(call, scales, call.in(scales).dtype == DType::kFloat32));
  SINTER_RETURN_UNLESS(
      call.in(scales).rank == 3 && std::equal(rows.dims, rows.dims + 3, call.in(scales).dims),
      invalid("the scales are not one for each row").of_input(scales));
  return ok_status();
}

Status infer_attention(OpCall& call) {
  const auto& a = call.attrs<AttentionAttrs>();
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2);
  SINTER_RETURN_IF_ERROR(check_code(a.causal, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.rule, 4));
  SINTER_RETURN_UNLESS(a.softcap >= 0 && a.softcap < kInfinity, invalid("softcap is not a number from 0 on"));
  SINTER_RETURN_UNLESS(a.window >= 0 && (a.window == 0 || a.causal != 0),
                       invalid("a window of %a keys, where causal is %b", a.window, a.causal));
  for (size_t i = 0; i < 3; ++i) {
    SINTER_RETURN_UNLESS(call.in(i).rank == 4, invalid("its rank is %a, not 4", call.in(i).rank).of_input(i));
    SINTER_RETURN_IF_ERROR(check_dims(call.in(i)));
  }
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(q.dtype)));
  SINTER_RETURN_IF_ERROR(check_rows(call, 1, kKeyScales));
  SINTER_RETURN_IF_ERROR(check_rows(call, 2, kValueScales));
  const Extent e = extent(call);
  SINTER_RETURN_UNLESS(k.dims[0] == e.batch && v.dims[0] == e.batch,
                       invalid("queries, keys and values differ in batch"));
  SINTER_RETURN_UNLESS(v.dims[1] == e.groups && v.dims[2] == e.keys,
                       invalid("keys and values differ in heads or length"));
  SINTER_RETURN_UNLESS(
      row_elements(k.dtype, k.dims[3]) == e.key_size,
      invalid("a key has %a values, a query %b", row_elements(k.dtype, k.dims[3]), e.key_size));
  SINTER_RETURN_UNLESS(e.groups >= 1 ? e.heads % e.groups == 0 : e.heads == 0,
                       invalid("%a query heads are not a multiple of %b key heads", e.heads, e.groups));
  if (call.has_input(kBias)) {
    SINTER_RETURN_IF_ERROR(check_computed_dtype(call, kBias));
    const int64_t scores[] = {e.batch, e.heads, e.queries, e.keys};
    SINTER_RETURN_IF_ERROR(check_dims(call.in(kBias)));
    SINTER_RETURN_IF_ERROR(check_broadcasts_to(call.in(kBias).shape(), scores));
  }
  if (call.has_input(kLengths)) {
    const TensorView& lengths = call.in(kLengths);
    SINTER_RETURN_IF_ERROR(check_dtype(call, kLengths, lengths.dtype == DType::kInt64));
    SINTER_RETURN_UNLESS(
        lengths.rank == 1 && lengths.dims[0] == e.batch,
        invalid("the lengths are not one for each of %a sequences", e.batch).of_input(kLengths));
  }
  if (call.has_input(kSinks)) {
    const TensorView& sinks = call.in(kSinks);
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, kSinks, 0));
    SINTER_RETURN_UNLESS(sinks.rank == 1 && sinks.dims[0] == e.heads,
                         invalid("the sinks are not one for each of %a heads", e.heads).of_input(kSinks));
  }
  const int64_t dims[] = {e.batch, e.heads, e.queries, e.value_size};
  return give_output(call, 0, q.dtype, dims);
}

// Counts a thread's bytes: scores [keys], sums [value_size], query [key_size], a row [the larger of both].
bool scratch(const Extent& e, size_t* bytes) {
  int64_t n = 0;
  if (!checked_add(e.keys, e.value_size, &n) || !checked_add(n, e.key_size, &n) ||
      !checked_add(n, std::max(e.key_size, e.value_size), &n) ||
      !checked_mul<int64_t>(n, sizeof(double), &n) || !checked_add<int64_t>(n, kBufferAlignment, &n))
    return false;
  *bytes = static_cast<size_t>(n) / kBufferAlignment * kBufferAlignment;
  return true;
}

Status attention_workspace(const OpCall& call, int threads, size_t* bytes) {
  size_t each = 0;
  SINTER_RETURN_UNLESS(scratch(extent(call), &each) && checked_mul<size_t>(each, std::max(threads, 1), bytes),
                       too_much_workspace());
  return ok_status();
}

// The rows of keys or values of one group, in double.
class Rows {
 public:
  Rows(const TensorView& rows, const TensorView* scales, int64_t matrix, double* wide)
      : type_(rows.dtype), length_(rows.dims[3]), wide_(wide) {
    const int64_t first = matrix * rows.dims[2];
    data_ = rows.data + first * length_ * static_cast<int64_t>(byte_width(type_));
    if (scales != nullptr) scales_ = scales->as<float>() + first;
  }
  // Returns the elements of row j, which stay until the next call.
  const double* operator()(int64_t j) const {
    const auto width = static_cast<int64_t>(byte_width(type_));
    const std::byte* row = data_ + j * length_ * width;
    const double scale = scales_ != nullptr ? static_cast<double>(scales_[j]) : 1.0;
    Run run;
    for (int64_t i = 0; i < length_; i += kRunLength) {
      const int64_t n = std::min(kRunLength, length_ - i);
      read_run(type_, row + i * width, width, 0, n, run);
      widen(run, i, n, scale);
    }
    return wide_;
  }

 private:
  // Widens items i .. i + n - 1 of a row, which are in `run`.
  void widen(const Run& run, int64_t i, int64_t n, double scale) const {
    const auto of_code = [&](uint64_t code) {
      return (static_cast<double>(code) - kAttentionMiddle) * scale;
    };
    for (int64_t d = 0; d < n; ++d) {
      if (holds_pairs(type_)) {
        wide_[2 * (i + d)] = of_code(run.u[d] & 15);
        wide_[2 * (i + d) + 1] = of_code(run.u[d] >> 4);
      } else {
        wide_[i + d] = type_ == DType::kInt8 ? static_cast<double>(run.i[d]) * scale : run.f[d];
      }
    }
  }

  DType type_;
  int64_t length_;  // in items: elements, or pairs of them
  double* wide_;
  const std::byte* data_ = nullptr;
  const float* scales_ = nullptr;
};

struct KeyRange {
  int64_t begin, end;
};
// Returns the keys that a query of a sequence attends to.
KeyRange attended(const AttentionAttrs& a, const Extent& e, int64_t length, int64_t query) {
  if (a.causal == 0) return {0, length};
  const int64_t end = std::clamp<int64_t>(query + (length - e.queries) + 1, 0, length);
  return {a.window > 0 ? std::max<int64_t>(end - a.window, 0) : 0, end};
}

template <class T>
void attend(const OpCall& call, const Extent& e, int64_t row, double* scores) {
  using Score = Computed<T>;
  const auto& a = call.attrs<AttentionAttrs>();
  const int64_t query = row % e.queries, head = row / e.queries % e.heads,
                batch = row / (e.queries * e.heads);
  const int64_t matrix = batch * e.groups + head / (e.heads / e.groups);
  const T* q = call.in(0).as<T>() + row * e.key_size;
  T* y = call.out(0).as<T>() + row * e.value_size;
  double* sums = scores + e.keys;
  double* wide = sums + e.value_size;
  const auto rows_of = [&](size_t i, size_t scales) {
    return Rows(call.in(i), call.has_input(scales) ? &call.in(scales) : nullptr, matrix, wide + e.key_size);
  };
  const Rows keys = rows_of(1, kKeyScales), values = rows_of(2, kValueScales);
  // Null stands for rows that are narrower than T.
  const T* k =
      call.in(1).dtype != call.in(0).dtype ? nullptr : call.in(1).as<T>() + matrix * e.keys * e.key_size;
  const T* v =
      call.in(2).dtype != call.in(0).dtype ? nullptr : call.in(2).as<T>() + matrix * e.keys * e.value_size;
  for (int64_t d = 0; d < e.key_size; ++d) wide[d] = static_cast<double>(q[d]);
  for (int64_t d = 0; d < e.value_size; ++d) sums[d] = 0;

  const std::byte* bias = nullptr;
  int64_t bias_step = 0;
  if (call.has_input(kBias)) {
    const TensorView& b = call.in(kBias);
    bias = b.data + batch * broadcast_stride(b, 4, 0) + head * broadcast_stride(b, 4, 1) +
           query * broadcast_stride(b, 4, 2);
    bias_step = broadcast_stride(b, 4, 3);
  }
  const int64_t length = call.has_input(kLengths) ? call.in(kLengths).as<const int64_t>()[batch] : e.keys;
  const KeyRange range = attended(a, e, length, query);
  const auto rule = static_cast<AttentionRule>(a.rule);
  const bool hides = rule == AttentionRule::kHides;
  double top = -kInfinity;
  bool any = !hides && !(call.has_input(kLengths) && range.begin == range.end);
  for (int64_t j = range.begin; j < range.end; ++j) {
    const Score extra = bias != nullptr ? load<Score>(bias + j * bias_step) : Score{0};
    const double product =
        k != nullptr ? dot(wide, k + j * e.key_size, e.key_size) : dot(wide, keys(j), e.key_size);
    if (hides) {
      const bool hidden = extra == -std::numeric_limits<Score>::infinity();
      any |= !hidden;
      double score = a.scale * product;
      if (a.softcap > 0) score = a.softcap * std::tanh(score / a.softcap);
      scores[j] = hidden ? -kInfinity : score + static_cast<double>(extra);
    } else {
      Score score = static_cast<Score>(product) * static_cast<Score>(a.scale);
      if (a.softcap > 0) {
        const auto cap = static_cast<Score>(a.softcap);
        score = std::tanh(score / cap) * cap;
      }
      const bool replaced = rule == AttentionRule::kReplaces && extra != Score{0};
      scores[j] = static_cast<double>(replaced ? extra : static_cast<Score>(score + extra));
    }
    if (!(scores[j] <= top)) top = scores[j];
  }
  double total = 0;
  if (call.has_input(kSinks)) {
    const auto sink = static_cast<double>(call.in(kSinks).as<T>()[head]);
    if (!(sink <= top)) top = sink;
    total = sink == -kInfinity && top != -kInfinity ? 0.0 : std::exp(sink - top);
  }
  for (int64_t j = range.begin; any && j < range.end; ++j) {
    const double weight = scores[j] == -kInfinity && top != -kInfinity ? 0.0 : std::exp(scores[j] - top);
    if (weight == 0 && hides) continue;
    total += weight;
    const auto add = [&](const auto* value) {
      for (int64_t d = 0; d < e.value_size; ++d) sums[d] += weight * static_cast<double>(value[d]);
    };
    v != nullptr ? add(v + j * e.value_size) : add(values(j));
  }
  if (rule == AttentionRule::kAddsNanToZero && total != total) any = false;
  for (int64_t d = 0; d < e.value_size; ++d) y[d] = any ? static_cast<T>(sums[d] / total) : T(0);
}

Status check_lengths(const OpCall& call, const Extent& e) {
  if (!call.has_input(kLengths)) return ok_status();
  for (int64_t b = 0; b < e.batch; ++b) {
    const int64_t length = call.in(kLengths).as<const int64_t>()[b];
    SINTER_RETURN_UNLESS(length >= 0 && length <= e.keys,
                         error(Code::kOutOfRange, "a length of %a, where there are %b keys", length, e.keys)
                             .of_input(kLengths));
  }
  return ok_status();
}

Status run_attention(const OpCall& call, RunContext& context) {
  const Extent e = extent(call);
  size_t each = 0;
  SINTER_RETURN_IF_ERROR(check_lengths(call, e));
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

const Kernel kAttentionKernel =
    reference_kernel({Op::kAttention, infer_attention, attention_workspace, run_attention});

}  // namespace sinter

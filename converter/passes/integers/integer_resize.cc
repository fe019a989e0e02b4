// Linear Resize of known values becomes QResize: scale and zero point stay. A graph that was given computes
// it in float unless it rounds the result to them itself.
#include <algorithm>
#include <cmath>

#include "converter/passes/integers/integer_form.h"
#include "runtime/core/op_enums.h"
#include "runtime/core/resize_taps.h"

namespace sinter::convert {
namespace {

constexpr int64_t kLongest = 1 << 20;  // axis whose table is made

// Sets `exact` to false where a weight is not a multiple of 2^-11.
std::vector<int32_t> taps_of(const ResizeAttrs& a, ResizeAxis axis, bool* exact) {
  std::vector<int64_t> index(static_cast<size_t>(axis.out * axis.taps));
  std::vector<double> weight(index.size());
  std::vector<uint8_t> outside(static_cast<size_t>(axis.out));
  std::vector<int32_t> taps(static_cast<size_t>(axis.out) * 2);
  axis.index = index.data(), axis.weight = weight.data(), axis.outside = outside.data();
  fill_resize_tables(a, &axis);
  if (!fixed_resize_taps(axis, taps.data())) taps.clear();
  const auto whole = [](double w) { return std::fabs(w * 0x1p11 - std::nearbyint(w * 0x1p11)) < 0x1p-20; };
  *exact &= std::all_of(weight.begin(), weight.end(), whole);
  return taps;
}

}  // namespace

std::optional<Interpolation> interpolation(const Graph& graph, const Node& node) {
  const auto* a = node.as<ResizeAttrs>();
  if (a == nullptr || static_cast<ResizeMode>(a->mode) != ResizeMode::kLinear || a->antialias != 0)
    return std::nullopt;
  const Dims& dims = graph.value(node.inputs[0]).dims;
  TensorView x;
  x.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), x.dims);
  ResizeAxis axes[kMaxRank];
  resize_axes(*a, x, axes);
  // Axes that change: one, or two neighbours.
  int first = -1, last = -1;
  for (int i = 0; i < x.rank; ++i) {
    if (axes[i].in < 1 || axes[i].out < 1 || axes[i].in > kLongest || axes[i].out > kLongest)
      return std::nullopt;
    if (axes[i].identity) continue;
    if (first < 0) first = i;
    last = i;
  }
  if (first < 0 || last - first > 1) return std::nullopt;
  const int rows = first, columns = last == first ? -1 : last;
  Interpolation result;
  result.rows = taps_of(*a, axes[rows], &result.exact);
  result.columns = columns < 0 ? std::vector<int32_t>{0, 0} : taps_of(*a, axes[columns], &result.exact);
  if (result.rows.empty() || result.columns.empty()) return std::nullopt;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < first; ++i) outer *= dims[static_cast<size_t>(i)];
  for (int i = last + 1; i < x.rank; ++i) inner *= dims[static_cast<size_t>(i)];
  result.in = {outer, axes[rows].in, columns < 0 ? 1 : axes[columns].in, inner};
  result.out = {outer, axes[rows].out, columns < 0 ? 1 : axes[columns].out, inner};
  return result;
}

bool IntegerForm::resize(int n) {
  const Node node = e.node(n);
  const QuantizedValue* x = node.inputs.empty() ? nullptr : known(node.inputs[0]);
  if (x == nullptr) return false;
  const QuantParams params = x->params;
  const int consumer = quantizer(n);
  const bool same = consumer >= 0 && params_of(consumer) == params;
  if (!rounded_here_ && !same) return false;
  const auto found = interpolation(e.graph(), node);
  // A quarter of a step of int8 from the rounded weights would be 64 of int16.
  if (!found || (!rounded_here_ && params.type != DType::kInt8 && !found->exact)) return false;
  const auto table = [&](const std::vector<int32_t>& taps) {
    return e.constant(Constant::of<int32_t>(DType::kInt32, {static_cast<int64_t>(taps.size() / 2), 2}, taps));
  };
  const auto view = [&](ValueId id, const Dims& dims) {
    return id == kAbsent ? id : e.insert(n, ViewAttrs{IntList(std::span<const int64_t>(dims)), -1}, {id});
  };
  ValueId q = view(x->q, found->in);
  if (q != kAbsent) q = e.insert(n, QResizeAttrs{}, {q, table(found->rows), table(found->columns)});
  q = view(q, e.value(node.outputs[0]).dims);
  if (q == kAbsent) return false;
  if (same)
    settle(consumer, q);
  else
    dequantize(n, q, params);
  return true;
}

}  // namespace sinter::convert

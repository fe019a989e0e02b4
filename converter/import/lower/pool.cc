// Pools: MaxPool, AveragePool, LpPool, the global ones, MaxUnpool.
#include <algorithm>
#include <numeric>

#include "converter/import/lower/spatial.h"

namespace sinter::convert {
namespace {

IntList as_list(const std::vector<int64_t>& v) { return IntList(std::span<const int64_t>(v)); }

bool pool_operand(NodeLowering& n, ValueId x) {
  return n.rank(x) >= 3 || n.refuse_shapes("X has rank {}; a pool needs spatial axes", n.rank(x));
}

// MaxPool-1 to 22.
bool lower_max_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  SpatialAttrs s;
  if (!pool_operand(n, x) || !read_spatial(n, spatial_dims(n.dims(x)), {}, &s)) return false;
  MaxPoolAttrs a{as_list(s.kernel), as_list(s.strides), as_list(s.dilations), as_list(s.pads)};
  a.ceil_mode = n.attr_int("ceil_mode", 0);
  a.storage_order = n.attr_int("storage_order", 0);
  const size_t outputs = n.wants_output(1) ? 2 : 1;
  const std::vector<ValueId> y = n.emit_many(a, {n.to_channels_last(x)}, outputs);
  if (outputs == 2 && !n.output(1, n.to_channels_first(y[1]))) return false;
  return n.output(0, n.to_channels_first(y[0]));
}

// com.microsoft NhwcMaxPool: MaxPool of channels-last values, which have one result.
bool lower_nhwc_max_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  SpatialAttrs s;
  if (!pool_operand(n, x)) return false;
  const Dims dims = n.dims(x), spatial(dims.begin() + 1, dims.end() - 1);
  if (!read_spatial(n, spatial, {}, &s)) return false;
  MaxPoolAttrs a{as_list(s.kernel), as_list(s.strides), as_list(s.dilations), as_list(s.pads)};
  a.ceil_mode = n.attr_int("ceil_mode", 0);
  return n.output(0, n.emit(a, {x}));
}

ValueId average(NodeLowering& n, ValueId x, const SpatialAttrs& s, bool ceil_mode, bool count_pads) {
  const AvgPoolAttrs a{as_list(s.kernel), as_list(s.strides), as_list(s.dilations),
                       as_list(s.pads),   ceil_mode,          count_pads};
  return n.to_channels_first(n.emit(a, {n.to_channels_last(x)}));
}

}  // namespace

ValueId average_pool(NodeLowering& n, ValueId x) {
  SpatialAttrs s;
  if (!pool_operand(n, x) || !read_spatial(n, spatial_dims(n.dims(x)), {}, &s)) return kUnknown;
  const bool ceil_mode = n.attr_int("ceil_mode", 0) != 0,
             count_pads = n.attr_int("count_include_pad", 0) != 0;
  return average(n, x, s, ceil_mode, count_pads);
}

namespace {

// AveragePool-1 to 22.
bool lower_average_pool(NodeLowering& n) { return n.output(0, average_pool(n, n.input(0))); }

// LpPool-1 to 22: (sum |x|^p)^(1/p), the sum being an average times the kernel's size, pads counting as
// zeros.
bool lower_lp_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  SpatialAttrs s;
  if (!pool_operand(n, x) || !read_spatial(n, spatial_dims(n.dims(x)), {}, &s)) return false;
  const bool ceil_mode = n.attr_int("ceil_mode", 0) != 0;
  const auto p = static_cast<double>(n.attr_int("p", 2));
  const DType t = n.dtype(x);
  const double cells = static_cast<double>(
      std::accumulate(s.kernel.begin(), s.kernel.end(), int64_t{1}, std::multiplies<int64_t>()));
  if (ceil_mode) {
    // The average of the added region does not count it; padding explicitly keeps the divisor whole.
    for (size_t i = 0; i < s.kernel.size(); ++i) {
      const int64_t reach = (s.kernel[i] - 1) * s.dilations[i] + 1;
      const int64_t span = spatial_dims(n.dims(x))[i] + s.pads[i] + s.pads[s.kernel.size() + i] - reach;
      // The remainder is 0 or more where the span is below 0, too: there is one window then.
      const int64_t rest = (span % s.strides[i] + s.strides[i]) % s.strides[i];
      if (rest == 0) continue;
      // ONNX drops a last window that would start in the end padding.
      if (span - rest + s.strides[i] >= spatial_dims(n.dims(x))[i] + s.pads[i]) continue;
      s.pads[s.kernel.size() + i] += s.strides[i] - rest;
    }
  }
  const ValueId powered = n.emit(PowAttrs{}, {n.emit(AbsAttrs{}, {x}), n.scalar(t, p)});
  const ValueId count = n.scalar(t, cells);
  const ValueId sum = n.mul(average(n, powered, s, false, true), count);
  return n.output(0, n.emit(PowAttrs{}, {sum, n.scalar(t, 1 / p)}));
}

ValueId reduce_spatial(NodeLowering& n, ValueId x, ReduceFn fn) {
  ReduceAttrs a;
  a.fn = static_cast<int64_t>(fn);
  for (int64_t i = 2; i < n.rank(x); ++i) a.axes.push(i);
  return a.axes.empty() ? x : n.emit(a, {x});
}

bool lower_global_average(NodeLowering& n) {
  return n.output(0, reduce_spatial(n, n.input(0), ReduceFn::kMean));
}
bool lower_global_max(NodeLowering& n) { return n.output(0, reduce_spatial(n, n.input(0), ReduceFn::kMax)); }
bool lower_global_lp(NodeLowering& n) {
  const auto p = static_cast<double>(n.attr_int("p", 2));
  const ValueId x = n.input(0);
  const DType t = n.dtype(x);
  const ValueId powered = n.emit(PowAttrs{}, {n.emit(AbsAttrs{}, {x}), n.scalar(t, p)});
  return n.output(0, n.emit(PowAttrs{}, {reduce_spatial(n, powered, ReduceFn::kSum), n.scalar(t, 1 / p)}));
}

// MaxUnpool-9 to 22: values go back to the places of MaxPool's indices, in a tensor of zeros.
bool lower_max_unpool(NodeLowering& n) {
  const ValueId x = n.input(0), indices = n.input(1);
  if (!pool_operand(n, x)) return false;
  const Dims d = n.dims(x), in = spatial_dims(d);
  const std::vector<int64_t> kernel = n.attr_ints("kernel_shape");
  const std::vector<int64_t> strides = n.attr_ints("strides", std::vector<int64_t>(in.size(), 1));
  const std::vector<int64_t> pads = n.attr_ints("pads", std::vector<int64_t>(2 * in.size(), 0));
  if (kernel.size() != in.size() || strides.size() != in.size() || pads.size() != 2 * in.size())
    return n.refuse_shapes("its attributes do not fit X {}", to_string(d));
  if (!within_reach(n, {kernel, strides, {}, pads})) return false;
  Dims natural{d[0], d[1]};
  for (size_t i = 0; i < in.size(); ++i)
    natural.push_back((in[i] - 1) * strides[i] + kernel[i] - pads[i] - pads[in.size() + i]);
  Dims out = natural;
  if (n.has_input(2)) {
    const auto shape = n.constant_ints(2);
    if (!shape) return false;
    out = *shape;
  }
  if (out.size() != d.size() || out[0] != d[0] || out[1] != d[1])
    return n.refuse_shapes("output_shape {} does not fit X {}", to_string(out), to_string(d));
  // The indices count in the tensor that MaxPool saw, which has the natural size.
  const int64_t total = element_count(natural);
  ValueId y = n.emit(BroadcastAttrs{IntList{total}}, {n.reshape(n.scalar(n.dtype(x), 0), {1})});
  y = n.emit(ScatterElementsAttrs{0, 0},
             {y, n.reshape(indices, {n.size(indices)}), n.reshape(x, {n.size(x)})});
  y = n.reshape(y, natural);
  if (out != natural) {
    PadAttrs grow;
    for (size_t i = 0; i < out.size(); ++i) grow.pads.push(0);
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] < natural[i])
        return n.refuse_shapes("output_shape {} is smaller than {}", to_string(out), to_string(natural));
      grow.pads.push(out[i] - natural[i]);
    }
    y = n.emit(grow, {y});
  }
  return n.output(0, y);
}

}  // namespace

std::span<const OnnxOperator> pool_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MaxPool", 1, lower_max_pool, "N", kTakesBounded},
      {"NhwcMaxPool", 1, lower_nhwc_max_pool, "N", kTakesBounded, kMicrosoft},
      {"AveragePool", 1, lower_average_pool, "F", kTakesBounded},
      {"LpPool", 1, lower_lp_pool, "F", kNoTraits},
      {"GlobalAveragePool", 1, lower_global_average, "F", kTakesBounded},
      {"GlobalMaxPool", 1, lower_global_max, "N", kTakesBounded},
      {"GlobalLpPool", 1, lower_global_lp, "F", kNoTraits},
      {"MaxUnpool", 9, lower_max_unpool, "N i i", kNoTraits},
  };
  return kRules;
}

}  // namespace sinter::convert

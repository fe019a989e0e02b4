// Rows of layer, group and local response normalizations.
#include <numeric>

#include "converter/export/rows.h"

namespace sinter::convert {
namespace {

std::vector<int64_t> axes_from(int64_t first, size_t rank) {
  std::vector<int64_t> axes(rank - static_cast<size_t>(first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

ConstantPtr filled(DType dtype, int64_t count, double value) {
  Bytes bytes;
  const LoadedBytes one = Constant::scalar(dtype, value)->load();
  for (int64_t i = 0; i < count; ++i) bytes.insert(bytes.end(), one.bytes.begin(), one.bytes.end());
  return Constant::owned(dtype, {count}, std::move(bytes));
}

// The operations of a LayerNormalization one by one, in float32 as its definition has them.
bool write_layer_norm_in_steps(NodeExport& n, const LayerNormAttrs& a) {
  const DType t = n.dtype(0), wide = is_wide_float(t) ? t : DType::kFloat32;
  const std::vector<int64_t> axes = axes_from(a.axis, n.rank(0));
  const std::string x = wide == t ? n.in(0) : n.cast(n.in(0), wide);
  const auto statistic = [&](size_t i) {
    return n.wants(i) && wide == n.result_value(i).dtype ? n.out(i) : n.temporary();
  };
  const std::string mean = statistic(1), variance = n.temporary(), deviation = statistic(2);
  n.reduce("ReduceMean", x, axes, true, mean);
  const std::string centred = n.step("Sub", {x, mean});
  n.reduce("ReduceMean", n.step("Mul", {centred, centred}), axes, true, variance);
  const std::string root = n.step("Sqrt", {n.step("Add", {variance, n.scalar(wide, a.epsilon)})});
  std::string normal = n.step("Div", {centred, root});
  if (n.wants(2)) n.add("Reciprocal", {root}, {deviation});
  for (size_t i = 1; i < 3; ++i)
    if (n.wants(i) && wide != n.result_value(i).dtype)
      n.add("Cast", {i == 1 ? mean : deviation}, {n.out(i)})
          .set("to", static_cast<int64_t>(onnx_type(n.result_value(i).dtype)));
  if (wide != t) normal = n.cast(normal, t);
  if (!n.has(2)) {
    n.add("Mul", {normal, n.in(1)}, {n.out(0)});
    return true;
  }
  n.add("Add", {n.step("Mul", {normal, n.in(1)}), n.in(2)}, {n.out(0)});
  return true;
}

}  // namespace

bool write_row(NodeExport& n, const LayerNormAttrs& a) {
  if (n.opset() < 17) return write_layer_norm_in_steps(n, a);
  const DType t = n.dtype(0);
  if ((n.wants(1) || n.wants(2)) && t == DType::kFloat64)
    return n.refuse("LayerNormalization gives mean and deviation of float64 in float32",
                    "compute mean and deviation in nodes of their own");
  const std::string x = n.in(0), scale = n.in(1), bias = n.in(2), y = n.out(0);
  // They are float32, whatever x is.
  std::string statistics[2];
  for (size_t i = 0; i < 2; ++i)
    if (n.wants(1 + i)) statistics[i] = t == DType::kFloat32 ? n.out(1 + i) : n.temporary();
  n.add("LayerNormalization", {x, scale, bias}, {y, statistics[0], statistics[1]})
      .set("axis", a.axis)
      .set_float("epsilon", a.epsilon);
  for (size_t i = 0; i < 2 && t != DType::kFloat32; ++i)
    if (n.wants(1 + i))
      n.add("Cast", {statistics[i]}, {n.out(1 + i)}).set("to", static_cast<int64_t>(onnx_type(t)));
  return true;
}

bool write_row(NodeExport& n, const RmsNormAttrs& a) {
  const std::string x = n.in(0), scale = n.in(1), y = n.out(0);
  const DType t = n.dtype(0);
  if (n.opset() >= 23) {
    n.add("RMSNormalization", {x, scale}, {y}).set("axis", a.axis).set_float("epsilon", a.epsilon);
    return true;
  }
  const DType wide = is_wide_float(t) ? t : DType::kFloat32;
  const std::string v = wide == t ? x : n.cast(x, wide);
  const std::string mean = n.temporary();
  n.reduce("ReduceMean", n.step("Mul", {v, v}), axes_from(a.axis, n.rank(0)), true, mean);
  const std::string root = n.step("Sqrt", {n.step("Add", {mean, n.scalar(wide, a.epsilon)})});
  std::string normal = n.step("Div", {v, root});
  if (wide != t) normal = n.cast(normal, t);
  n.add("Mul", {normal, scale}, {y});
  return true;
}

bool write_row(NodeExport& n, const GroupNormAttrs& a) {
  const Axes first = channels_first(n.rank(0));
  const std::string x = n.in(0, first), scale = n.in(1), bias = n.in(2), y = n.out(0, first);
  const Dims dims = tensor_dims(n.dims(0), first);
  if (a.groups == dims[1]) {
    n.add("InstanceNormalization", {x, scale, bias}, {y}).set_float("epsilon", a.epsilon);
    return true;
  }
  if (n.opset() >= 21) {
    n.add("GroupNormalization", {x, scale, bias}, {y})
        .set("num_groups", a.groups)
        .set_float("epsilon", a.epsilon);
    return true;
  }
  // Each group becomes a channel.
  const DType t = n.dtype(0);
  ModelParts& parts = n.scope().parts();
  const std::string ones = parts.initializer(filled(t, a.groups, 1), n.label() + "_ones");
  const std::string zeros = parts.initializer(filled(t, a.groups, 0), n.label() + "_zeros");
  const std::string normal = n.temporary();
  const std::string groups = n.reshaped(x, {dims[0], a.groups, element_count(dims) / (dims[0] * a.groups)});
  n.add("InstanceNormalization", {groups, ones, zeros}, {normal}).set_float("epsilon", a.epsilon);
  Axes along{0};
  along.resize(dims.size() - 1, -1);
  const std::string scaled = n.step("Mul", {n.reshaped(normal, dims), n.in(1, along)});
  n.add("Add", {scaled, n.in(2, along)}, {y});
  return true;
}

bool write_row(NodeExport& n, const LrnAttrs& a) {
  const Axes first = channels_first(n.rank(0));
  const std::string x = n.in(0, first);
  n.add("LRN", {x}, {n.out(0, first)})
      .set("size", a.size)
      .set_float("alpha", a.alpha)
      .set_float("beta", a.beta)
      .set_float("bias", a.bias);
  return true;
}

}  // namespace sinter::convert

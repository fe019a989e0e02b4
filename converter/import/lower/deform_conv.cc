// DeformConv, taken apart into what the device has.
#include <algorithm>
#include <cmath>

#include "converter/import/lower/common.h"
#include "converter/import/lower/spatial.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// DeformConv-19, 2-D: every kernel cell samples the input at its offset; the samples are multiplied with the
// weights in a 1 x 1 convolution.
bool lower_deform_conv(NodeLowering& n) {
  const ValueId x = n.input(0), w = n.input(1);
  const Dims d = n.dims(x), wd = n.dims(w), od = n.dims(n.input(2));
  if (d.size() != 4 || wd.size() != 4 || od.size() != 4) return n.refuse("only 2-D images are supported");
  const std::vector<int64_t> strides = n.attr_ints("strides", {1, 1}),
                             dilations = n.attr_ints("dilations", {1, 1}),
                             pads = n.attr_ints("pads", {0, 0, 0, 0}),
                             kernel = n.attr_ints("kernel_shape", {wd[2], wd[3]});
  const int64_t group = n.attr_int("group", 1), offset_groups = n.attr_int("offset_group", 1);
  const int64_t cells = wd[2] * wd[3], rows = od[2], columns = od[3], channels = d[1];
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4 ||
      kernel != std::vector<int64_t>{wd[2], wd[3]} || group < 1 || offset_groups < 1 ||
      channels % group != 0 || channels % offset_groups != 0 || wd[0] % group != 0 ||
      wd[1] != channels / group || od[0] != d[0] || od[1] % offset_groups != 0 ||
      od[1] / offset_groups != cells * 2 || d[2] < 1 || d[3] < 1)
    return n.refuse_shapes("X {}, W {} and offsets {} do not fit", to_string(d), to_string(wd),
                           to_string(od));
  constexpr int64_t kMostPlaces = 1 << 24;
  if (!within_reach(n, {kernel, strides, dilations, pads})) return false;
  if (cells > kMostPlaces || (cells > 0 && rows > kMostPlaces / cells) ||
      (cells * rows > 0 && columns > kMostPlaces / (cells * rows)))
    return n.refuse_shapes("{} x {} places of {} cells are too many", rows, columns, cells);
  const DType t = n.dtype(x);
  // The places that each cell samples without an offset: [cells * rows, columns] for y and x.
  std::vector<double> places[2];
  for (int64_t cell = 0; cell < cells; ++cell)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        places[0].push_back(static_cast<double>(i * strides[0] - pads[0] + cell / wd[3] * dilations[0]));
        places[1].push_back(static_cast<double>(j * strides[1] - pads[1] + cell % wd[3] * dilations[1]));
      }
  ValueId base[2];
  for (int axis = 0; axis < 2; ++axis)
    base[axis] = n.cast(n.add_constant(Constant::of<double>(DType::kFloat64, {1, cells * rows, columns},
                                                            std::span<const double>(places[axis]))),
                        t);
  std::vector<ValueId> sampled;
  for (int64_t g = 0; g < offset_groups; ++g) {
    const ValueId offsets =
        n.reshape(n.slice(n.input(2), 1, g * cells * 2, cells * 2), {d[0], cells, 2, rows, columns});
    ValueId normal[2];
    for (int axis = 0; axis < 2; ++axis) {
      const ValueId own = n.reshape(n.slice(offsets, 2, axis, 1), {d[0], cells * rows, columns});
      // (2 p + 1) / size - 1 is pixel p where corners are not aligned.
      const auto size = static_cast<double>(d[static_cast<size_t>(2 + axis)]);
      const ValueId shift = n.scalar(t, 1 / size - 1), step = n.scalar(t, 2 / size);
      normal[axis] = n.add(n.mul(n.add(own, base[axis]), step), shift);
    }
    const ValueId grid = n.emit(ConcatAttrs{3}, {n.unsqueeze(normal[1], 3), n.unsqueeze(normal[0], 3)});
    const int64_t width = channels / offset_groups;
    GridSampleAttrs a;
    a.mode = static_cast<int64_t>(SampleMode::kLinear),
    a.padding_mode = static_cast<int64_t>(SamplePadding::kZeros);
    ValueId y = n.emit(a, {n.to_channels_last(n.slice(x, 1, g * width, width)), grid});
    if (n.has_input(4))
      y = n.mul(y, n.reshape(n.slice(n.input(4), 1, g * cells, cells), {d[0], cells * rows, columns, 1}));
    sampled.push_back(y);
  }
  ValueId y = sampled.size() == 1 ? sampled[0] : n.emit(ConcatAttrs{3}, sampled);
  // [N, cells, rows, columns, C] -> [N, rows, columns, C * cells]: channels are in the groups' order.
  y = n.transpose(n.reshape(y, {d[0], cells, rows, columns, channels}), {0, 2, 3, 4, 1});
  std::vector<ValueId> operands{n.reshape(y, {d[0], rows, columns, channels * cells}),
                                n.reshape(w, {wd[0], 1, 1, wd[1] * cells})};
  if (n.has_input(3)) operands.push_back(n.input(3));
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0}, conv.group = group;
  return n.output(0, n.to_channels_first(n.emit(conv, operands)));
}

}  // namespace

std::span<const OnnxOperator> deform_conv_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"DeformConv", 19, lower_deform_conv, "F F F F F", kSumsProducts | kThreeInputs},
  };
  return kRules;
}

}  // namespace sinter::convert

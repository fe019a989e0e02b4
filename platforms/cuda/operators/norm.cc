// LayerNorm, RmsNorm, GroupNorm and Lrn. Their operands are dense.
#include <algorithm>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

Kernel either(DType t, Kernel floats, Kernel doubles) { return t == DType::kFloat64 ? doubles : floats; }

Status lower_rows(Lowering& l, int64_t axis, double epsilon, bool centre) {
  SINTER_RETURN_IF_ERROR(l.check_dense());
  const TensorView& x = l.in(0);
  LayerNormArguments a;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &a.box));
  int64_t rows = 1, length = 1;
  for (int i = 0; i < x.rank; ++i) (i < axis ? rows : length) *= x.dims[i];
  SINTER_RETURN_UNLESS(rows <= INT32_MAX && length <= INT32_MAX,
                       unsupported("an operand has 2^31 rows or more"));
  a.rows = static_cast<uint32_t>(rows), a.length = static_cast<uint32_t>(length);
  if (a.rows == 0) return ok_status();
  a.x = x.data, a.dtype = x.dtype;
  a.epsilon = epsilon, a.centre = centre ? 1 : 0;
  a.scale = l.in(1).data;
  a.scale_steps = steps_of(l.in(1), a.box);
  if (l.has_input(2)) a.bias = l.in(2).data, a.bias_steps = steps_of(l.in(2), a.box);
  // Along a row, each parameter is one number, or dense, and the next row has the same.
  bool same = true;
  for (int i = 0; i < axis; ++i) same = same && a.scale_steps.of[i] == 0 && a.bias_steps.of[i] == 0;
  Steps* const both[] = {&a.scale_steps, &a.bias_steps};
  merge_axes(&a.box, both);
  const int last = a.box.rank - 1;
  same = same && (last < 0 || length == 1 || a.box.dims[last].divisor == length ||
                  (last == 0 && a.scale_steps.of[0] == 0 && a.bias_steps.of[0] == 0));
  a.same_in_rows = same ? 1 : 0;
  if (same && last >= 0 && length > 1)
    a.scale_step = a.scale_steps.of[last], a.bias_step = a.bias_steps.of[last];
  if (l.has_output(0)) a.y = l.out(0).data;
  if (l.has_output(1)) a.mean = l.out(1).data;
  if (l.has_output(2)) a.inverse = l.out(2).data;
  a.teams = choose_teams(rows, length, 4, false);
  return l.launch_one_of(either(x.dtype, Kernel::k_layer_norm_floats, Kernel::k_layer_norm_doubles),
                         {.blocks = {blocks_for(rows, a.teams.count)}, .shared_bytes = kTeamRoom}, a);
}

}  // namespace

Status lower_LayerNorm(Lowering& l) {
  const auto& attrs = l.attrs<LayerNormAttrs>();
  return lower_rows(l, attrs.axis, attrs.epsilon, true);
}
Status lower_RmsNorm(Lowering& l) {
  const auto& attrs = l.attrs<RmsNormAttrs>();
  return lower_rows(l, attrs.axis, attrs.epsilon, false);
}

Status lower_GroupNorm(Lowering& l) {
  const auto& attrs = l.attrs<GroupNormAttrs>();
  SINTER_RETURN_IF_ERROR(l.check_dense());
  const TensorView& x = l.in(0);
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  if (box.size == 0) return ok_status();
  GroupNormArguments a;
  a.x = x.data, a.scale = l.in(1).data, a.bias = l.in(2).data, a.y = l.out(0).data;
  a.dtype = x.dtype, a.epsilon = attrs.epsilon, a.size = box.size;
  a.samples = static_cast<uint32_t>(x.dims[0]), a.channels = static_cast<uint32_t>(x.dims[x.rank - 1]);
  a.pixels = box.size / a.samples / a.channels;
  a.group_count = static_cast<uint32_t>(attrs.groups), a.width = a.channels / a.group_count;
  a.by_channels = Divider(a.channels), a.by_width = Divider(a.width);
  a.by_sample = Divider(int64_t{a.pixels} * a.channels);
  SINTER_RETURN_UNLESS(a.samples <= 65535, unsupported("there are more than 65535 samples"));
  const size_t spread_bytes = x.dtype == DType::kFloat64 ? 16 : 8;

  // A block takes some of a channel's pixels, so that there are enough blocks.
  constexpr int64_t kEach = 8, kBlocks = 256, kMostSplits = 64;
  a.teams = choose_teams(a.channels, a.pixels, kEach, true);
  const uint32_t across = blocks_of(a.channels, a.teams.count);
  int64_t splits = (kBlocks + int64_t{across} * a.samples - 1) / (int64_t{across} * a.samples);
  splits = std::clamp<int64_t>(std::min(splits, a.pixels / (a.teams.size * kEach)), 1, kMostSplits);
  a.pixels_each = static_cast<uint32_t>((a.pixels + splits - 1) / splits);
  a.splits = (a.pixels + a.pixels_each - 1) / a.pixels_each;
  a.parts = l.workspace(size_t{a.samples} * a.splits * a.channels * spread_bytes);
  a.groups = l.workspace(size_t{a.samples} * a.group_count * spread_bytes);
  constexpr uint32_t kCountedRoom = kTeamBlock * 24;
  SINTER_RETURN_IF_ERROR(l.launch_one_of(
      either(x.dtype, Kernel::k_group_norm_channels_floats, Kernel::k_group_norm_channels_doubles),
      {.blocks = {across, a.splits, a.samples}, .shared_bytes = kCountedRoom}, a));
  const int64_t groups = int64_t{a.samples} * a.group_count;
  a.teams = choose_teams(groups, int64_t{a.splits} * a.width, 4, false);
  SINTER_RETURN_IF_ERROR(l.launch_one_of(
      either(x.dtype, Kernel::k_group_norm_groups_floats, Kernel::k_group_norm_groups_doubles),
      {.blocks = {blocks_of(groups, a.teams.count)}, .shared_bytes = kCountedRoom}, a));
  return l.launch_one_of(either(x.dtype, Kernel::k_group_norm_floats, Kernel::k_group_norm_doubles),
                         {.blocks = {blocks_for(a.size, threads_of(Kernel::k_group_norm_floats))}}, a);
}

Status lower_Lrn(Lowering& l) {
  const auto& attrs = l.attrs<LrnAttrs>();
  SINTER_RETURN_IF_ERROR(l.check_dense());
  const TensorView& x = l.in(0);
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  if (box.size == 0) return ok_status();
  LrnArguments a;
  const int64_t channels = x.dims[x.rank - 1];
  a.x = x.data, a.y = l.out(0).data, a.dtype = x.dtype;
  a.size = box.size, a.by_channels = Divider(channels);
  // The window never needs to reach further than all channels.
  a.before = static_cast<uint32_t>(std::min((attrs.size - 1) / 2, channels));
  a.after = static_cast<uint32_t>(std::min(attrs.size / 2, channels));
  a.factor = attrs.alpha / static_cast<double>(attrs.size), a.beta = attrs.beta, a.bias = attrs.bias;
  return l.launch_one_of(either(x.dtype, Kernel::k_lrn_floats, Kernel::k_lrn_doubles),
                         {.blocks = {blocks_for(a.size, threads_of(Kernel::k_lrn_floats))}}, a);
}

}  // namespace sinter::cuda

// Nms.
#include <algorithm>

#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/sort.h"

namespace sinter::cuda {

Status lower_Nms(Lowering& l) {
  const auto& attrs = l.attrs<NmsAttrs>();
  const TensorView &boxes = l.in(0), &scores = l.in(1);
  SINTER_RETURN_UNLESS(is_wide_float(boxes.dtype), unsupported("boxes are neither float32 nor float64"));
  for (size_t i : {2, 3})
    SINTER_RETURN_UNLESS(!l.has_input(i) || is_wide_float(l.in(i).dtype),
                         unsupported("a threshold is neither float32 nor float64"));
  SINTER_RETURN_UNLESS(boxes.dense() && scores.dense(), unsupported("operands are not dense"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(boxes.shape(), &box));
  SINTER_RETURN_IF_ERROR(box_of(scores.shape(), &box));
  const int64_t n = boxes.dims[1], limit = std::clamp<int64_t>(attrs.max_per_class, 0, n);
  for (size_t i : {0, 1}) {
    if (!l.has_output(i)) continue;
    SINTER_RETURN_UNLESS(l.out(i).dense(), unsupported("a result is not dense"));
    SINTER_RETURN_IF_ERROR(l.fill(l.out(i).data, static_cast<size_t>(l.out(i).dense_bytes()), 0));
  }
  if (box.size == 0 || limit == 0) return ok_status();

  SortChunksArguments s;
  s.type = boxes.dtype;
  s.x = scores.data, s.descending = 1, s.filtered = 1;
  s.length = static_cast<uint32_t>(n), s.lines = box.size / s.length;
  if (l.has_input(3)) s.limit = l.in(3).data, s.limit_double = l.in(3).dtype == DType::kFloat64;
  SortedLines sorted;
  SINTER_RETURN_IF_ERROR(add_sort(l, s, n, &sorted));

  NmsArguments a;
  a.boxes = boxes.data, a.records = sorted.records, a.pitch = sorted.pitch;
  a.length = s.length, a.lines = s.lines, a.classes = Divider(scores.dims[1]);
  a.limit = static_cast<uint32_t>(limit), a.limit_divider = Divider(limit),
  a.is_double = boxes.dtype == DType::kFloat64;
  a.center = static_cast<int32_t>(attrs.center_point_box);
  if (l.has_input(2)) a.threshold = l.in(2).data, a.threshold_double = l.in(2).dtype == DType::kFloat64;
  a.dropped = reinterpret_cast<uint8_t*>(l.workspace(size_t{a.lines} * a.length));
  a.kept = reinterpret_cast<uint32_t*>(l.workspace(size_t{a.lines} * a.limit * sizeof(uint32_t)));
  a.counts = reinterpret_cast<uint32_t*>(l.workspace((size_t{a.lines} + 1) * sizeof(uint32_t)));
  SINTER_RETURN_IF_ERROR(
      l.fill(reinterpret_cast<std::byte*>(a.counts), (size_t{a.lines} + 1) * sizeof(uint32_t), 0));
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_nms_keep>({.blocks = {blocks_for(a.lines, 1)}}, a));
  // There is one count more than lines: the number before the end.
  AddCountsArguments c;
  c.counts = a.counts, c.chunks = a.lines + 1;
  if (l.has_output(1)) c.total = l.out(1).as<int64_t>();
  SINTER_RETURN_IF_ERROR(
      l.launch<Kernel::k_add_counts>({.blocks = {1}, .shared_bytes = 32 * sizeof(uint32_t)}, c));
  if (!l.has_output(0)) return ok_status();
  a.selected = l.out(0).as<int64_t>();
  const int64_t all = int64_t{a.lines} * a.limit;
  return l.launch<Kernel::k_nms_write>({.blocks = {blocks_for(all, threads_of(Kernel::k_nms_write))}}, a);
}

}  // namespace sinter::cuda

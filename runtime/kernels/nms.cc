// Nms: per batch and class, boxes in order of falling score (equal scores: lower index first), each kept
// unless it overlaps a kept one by more than the threshold. Boxes whose score is NaN are never kept.
#include <algorithm>

#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

Status check_threshold(const OpCall& call, size_t i) {
  if (!call.has_input(i)) return ok_status();
  SINTER_RETURN_IF_ERROR(check_dtype(call, i, is_compute_float(call.in(i).dtype)));
  for (const int64_t d : call.in(i).shape())
    SINTER_RETURN_UNLESS(d == 1, invalid("a threshold is not one element"));
  return ok_status();
}

Status infer_nms(OpCall& call) {
  const auto& a = call.attrs<NmsAttrs>();
  const TensorView &boxes = call.in(0), &scores = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(boxes.dtype)));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  SINTER_RETURN_IF_ERROR(check_code(a.center_point_box, 2));
  SINTER_RETURN_UNLESS(
      boxes.rank == 3 && scores.rank == 3,
      invalid("boxes have rank %a and scores rank %b; both must be 3", boxes.rank, scores.rank));
  SINTER_RETURN_UNLESS(boxes.dims[2] == 4, invalid("a box has %a numbers, not 4", boxes.dims[2]));
  SINTER_RETURN_UNLESS(
      boxes.dims[0] == scores.dims[0] && boxes.dims[1] == scores.dims[2],
      invalid("the scores are not one for each of %a batches of %b boxes", boxes.dims[0], boxes.dims[1]));
  SINTER_RETURN_IF_ERROR(check_threshold(call, 2));
  SINTER_RETURN_IF_ERROR(check_threshold(call, 3));
  int64_t rows = std::clamp<int64_t>(a.max_per_class, 0, boxes.dims[1]);
  SINTER_RETURN_UNLESS(checked_mul(rows, scores.dims[0], &rows) && checked_mul(rows, scores.dims[1], &rows),
                       invalid("the result is too large"));
  const int64_t dims[] = {rows, 3};
  SINTER_RETURN_IF_ERROR(give_output(call, 0, DType::kInt64, dims));
  return give_output(call, 1, DType::kInt64, {});
}

// The workspace holds the candidates' order and the boxes kept of one class.
Status nms_workspace(const OpCall& call, int, size_t* bytes) {
  SINTER_RETURN_UNLESS(checked_mul(static_cast<size_t>(call.in(0).dims[1]), 2 * sizeof(int64_t), bytes),
                       unsupported("too many boxes"));
  return ok_status();
}

template <class T>
struct Box {
  T x0, y0, x1, y1;
};

template <class T>
Box<T> read_box(const T* p, bool center) {
  if (center) return {p[0] - p[2] / 2, p[1] - p[3] / 2, p[0] + p[2] / 2, p[1] + p[3] / 2};
  return {std::min(p[1], p[3]), std::min(p[0], p[2]), std::max(p[1], p[3]), std::max(p[0], p[2])};
}

// Returns whether the overlap, as a part of the union, exceeds the threshold.
template <class T>
bool overlaps(const Box<T>& a, const Box<T>& b, T threshold) {
  const T x0 = std::max(a.x0, b.x0), x1 = std::min(a.x1, b.x1), y0 = std::max(a.y0, b.y0),
          y1 = std::min(a.y1, b.y1);
  if (!(x1 > x0) || !(y1 > y0)) return false;
  const T shared = (x1 - x0) * (y1 - y0), area_a = (a.x1 - a.x0) * (a.y1 - a.y0),
          area_b = (b.x1 - b.x0) * (b.y1 - b.y0), joint = area_a + area_b - shared;
  if (!(shared > 0) || !(area_a > 0) || !(area_b > 0) || !(joint > 0)) return false;
  return shared / joint > threshold;
}

Status read_threshold(const OpCall& call, size_t i, double* value) {
  if (!call.has_input(i)) return ok_status();
  const TensorView& v = call.in(i);
  return for_float(v.dtype, [&](auto tag) {
    *value = load<typename decltype(tag)::type>(v.data);
    return ok_status();
  });
}

Status run_nms(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<NmsAttrs>();
  const TensorView &boxes = call.in(0), &scores = call.in(1);
  double iou_limit = 0, score_limit = -kInfinity;
  SINTER_RETURN_IF_ERROR(read_threshold(call, 2, &iou_limit));
  SINTER_RETURN_IF_ERROR(read_threshold(call, 3, &score_limit));
  const bool has_score_limit = call.has_input(3);
  const int64_t n = boxes.dims[1], classes = scores.dims[1],
                limit = std::clamp<int64_t>(a.max_per_class, 0, n);
  auto* order = reinterpret_cast<int64_t*>(context.workspace.data());
  auto* kept = order + n;
  int64_t* selected = call.has_output(0) ? call.out(0).as<int64_t>() : nullptr;
  int64_t count = 0;
  SINTER_RETURN_IF_ERROR(for_float(boxes.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T threshold = static_cast<T>(iou_limit);
    if (limit == 0) return ok_status();  // also where there are no boxes
    for (int64_t b = 0; b < boxes.dims[0]; ++b) {
      const T* box = boxes.as<T>() + b * n * 4;
      for (int64_t c = 0; c < classes; ++c) {
        const T* score = scores.as<T>() + (b * classes + c) * n;
        int64_t candidates = 0;
        for (int64_t i = 0; i < n; ++i)
          if (has_score_limit ? score[i] > static_cast<T>(score_limit) : score[i] == score[i])
            order[candidates++] = i;
        std::sort(order, order + candidates,
                  [&](int64_t i, int64_t j) { return score[i] != score[j] ? score[i] > score[j] : i < j; });
        int64_t kept_count = 0;
        for (int64_t k = 0; k < candidates && kept_count < limit; ++k) {
          const Box<T> candidate = read_box(box + order[k] * 4, a.center_point_box != 0);
          bool keep = true;
          for (int64_t j = 0; j < kept_count && keep; ++j)
            keep = !overlaps(candidate, read_box(box + kept[j] * 4, a.center_point_box != 0), threshold);
          if (!keep) continue;
          kept[kept_count++] = order[k];
          if (selected != nullptr) {
            selected[count * 3] = b;
            selected[count * 3 + 1] = c;
            selected[count * 3 + 2] = order[k];
          }
          ++count;
        }
      }
    }
    return ok_status();
  }));
  if (selected != nullptr) std::fill(selected + count * 3, selected + call.out(0).size(), 0);
  if (call.has_output(1)) *call.out(1).as<int64_t>() = count;
  return ok_status();
}

}  // namespace

const Kernel kNmsKernel = reference_kernel({Op::kNms, infer_nms, nms_workspace, run_nms});

}  // namespace sinter

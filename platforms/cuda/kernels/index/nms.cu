// Nms: a block for each class of a batch keeps its boxes one by one, and drops all later ones that overlap
// it.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/kernels/index/nms.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE T smaller_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
SINTER_DEVICE T larger_of(T a, T b) {
  return a < b ? b : a;
}

template <class T>
struct Corners {
  T x0, y0, x1, y1;

  SINTER_DEVICE Corners(const std::byte* boxes, int64_t number, bool center) {
    const T* p = reinterpret_cast<const T*>(boxes) + number * 4;
    if (center) {
      x0 = p[0] - p[2] / 2, y0 = p[1] - p[3] / 2, x1 = p[0] + p[2] / 2, y1 = p[1] + p[3] / 2;
    } else {
      x0 = smaller_of(p[1], p[3]), y0 = smaller_of(p[0], p[2]);
      x1 = larger_of(p[1], p[3]), y1 = larger_of(p[0], p[2]);
    }
  }
  // Returns whether the overlap, as a part of the union, exceeds the threshold.
  SINTER_DEVICE bool overlaps(const Corners& b, T threshold) const {
    const T left = larger_of(x0, b.x0), right = smaller_of(x1, b.x1);
    const T top = larger_of(y0, b.y0), bottom = smaller_of(y1, b.y1);
    if (!(right > left) || !(bottom > top)) return false;
    const T shared = (right - left) * (bottom - top), area = (x1 - x0) * (y1 - y0);
    const T other = (b.x1 - b.x0) * (b.y1 - b.y0), joint = area + other - shared;
    if (!(shared > 0) || !(area > 0) || !(other > 0) || !(joint > 0)) return false;
    return shared / joint > threshold;
  }
};

// All threads of a block go through the records together; `dropped` is written before a barrier and read
// behind it.
template <class T>
SINTER_DEVICE void keep_boxes(const NmsArguments& a) {
  T threshold = 0;
  if (a.threshold != nullptr)
    threshold =
        static_cast<T>(a.threshold_double != 0 ? load<double>(a.threshold) : load<float>(a.threshold));
  for (uint32_t line = block_x(); line < a.lines; line += blocks_x()) {
    const int64_t first_box = int64_t{a.classes.divide(line)} * a.length;
    const uint64_t* keys = a.records.keys + int64_t{line} * a.pitch;
    const uint32_t* numbers = a.records.numbers + int64_t{line} * a.pitch;
    uint8_t* dropped = a.dropped + int64_t{line} * a.length;
    for (uint32_t i = static_cast<uint32_t>(thread_index()); i < a.length;
         i += static_cast<uint32_t>(block_threads()))
      dropped[i] = 0;
    barrier();
    uint32_t count = 0;
    for (uint32_t i = 0; i < a.length && count < a.limit && keys[i] != kNoKey; ++i) {
      if (dropped[i] != 0) continue;
      if (thread_index() == 0) a.kept[int64_t{line} * a.limit + count] = numbers[i];
      if (++count == a.limit) break;
      const Corners<T> box(a.boxes, first_box + numbers[i], a.center != 0);
      for (uint32_t j = i + 1 + static_cast<uint32_t>(thread_index()); j < a.length && keys[j] != kNoKey;
           j += static_cast<uint32_t>(block_threads()))
        if (dropped[j] == 0 &&
            Corners<T>(a.boxes, first_box + numbers[j], a.center != 0).overlaps(box, threshold))
          dropped[j] = 1;
      barrier();
    }
    if (thread_index() == 0) a.counts[line] = count;
    barrier();
  }
}

}  // namespace

SINTER_KERNEL(nms_keep, NmsArguments) {
  if (a.is_double != 0)
    keep_boxes<double>(a);
  else
    keep_boxes<float>(a);
}

// `counts` has the number of boxes of the lines before each line and, behind them, of all.
SINTER_KERNEL(nms_write, NmsArguments) {
  const int64_t all = int64_t{a.lines} * a.limit;
  for (int64_t n = global_thread(); n < all; n += global_threads()) {
    uint32_t i;
    const uint32_t line = a.limit_divider.divide(static_cast<uint32_t>(n), &i);
    const uint32_t before = a.counts[line];
    if (i >= a.counts[line + 1] - before) continue;
    uint32_t in_batch;
    const uint32_t batch = a.classes.divide(line, &in_batch);
    int64_t* row = a.selected + (int64_t{before} + i) * 3;
    row[0] = batch, row[1] = in_batch, row[2] = a.kept[n];
  }
}

}  // namespace sinter::cuda

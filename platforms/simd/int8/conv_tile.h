// Convolutions of int8 box by box. A box is a piece of the result, whose input is copied with its padding in
// the form that the instruction set multiplies, so that windows are read there in place.
#pragma once

#include "platforms/simd/window.h"

namespace sinter::simd {

// A piece of one image's result: lines begin[1] .. end[1] - 1 of it, and pixels begin[2] .. end[2] - 1 of
// each. Its input has g.kernel[0] planes of `lines` lines of `line` pixels.
struct QBox {
  int64_t batch = 0, begin[3] = {}, end[3] = {};
  int64_t lines = 0, line = 0;

  int64_t pixels() const { return (end[1] - begin[1]) * (end[2] - begin[2]); }
  // Returns the place of the result's pixel i, j.
  int64_t pixel(const Geometry& g, int64_t i, int64_t j) const {
    return ((batch * g.out[0] + begin[0]) * g.out[1] + i) * g.out[2] + j;
  }
};

// Returns the first pixel of line i1 in plane i0 of the box's image x; null if the line is outside.
template <class T>
const T* input_line(const Geometry& g, const QBox& box, const T* x, int64_t i0, int64_t i1) {
  if (i0 < 0 || i0 >= g.in[0] || i1 < 0 || i1 >= g.in[1]) return nullptr;
  return x + ((box.batch * g.in[0] + i0) * g.in[1] + i1) * g.in[2] * g.in_channels;
}

// The sizes of boxes; the last ones of a line or plane may be smaller.
struct QBoxes {
  int64_t out_lines = 1, out_pixels = 1;
  int64_t lines = 1, line = 1, elements = 0;  // of the input

  int64_t pixels() const { return out_lines * out_pixels; }

  // Sets the input's sizes; false on overflow.
  [[nodiscard]] bool measure(const Geometry& g, int64_t channels) {
    return reach(g, 1, out_lines, &lines) && reach(g, 2, out_pixels, &line) &&
           checked_mul(lines, line, &elements) && checked_mul(elements, g.kernel[0], &elements) &&
           checked_mul(elements, channels, &elements) && elements < INT32_MAX;
  }

  // Chooses the piece of the result with at most `most_elements` of input (unless some pixels need more), in
  // pieces of nearly the same size.
  [[nodiscard]] bool choose(const Geometry& g, int64_t channels, int64_t most_elements, int64_t most_pixels) {
    const auto fits = [&](int64_t n, int64_t pixels) {
      QBoxes b;
      b.out_lines = n, b.out_pixels = pixels;
      return n * pixels <= most_pixels && b.measure(g, channels) && b.elements <= most_elements;
    };
    int64_t n = std::clamp<int64_t>(g.out[2], 1, most_pixels);
    while (n > 8 && !fits(1, n)) n = divide_up(n, 2);
    out_pixels = even_piece(g.out[2], n);
    n = 1;
    while (out_pixels == g.out[2] && n < g.out[1] && fits(n + 1, out_pixels)) ++n;
    out_lines = even_piece(g.out[1], n);
    return measure(g, channels);
  }

  // Makes smaller boxes, whose input is to be measured again, if the threads could not share these evenly.
  // Neighbouring channels of a pixel are better left to one thread: they are in one line of the cache.
  void share(const Geometry& g, int64_t threads) {
    cut(g, 1, threads, &out_lines);
    cut(g, 2, threads, &out_pixels);
  }

  int64_t count(const Geometry& g) const {
    return g.batch * g.out[0] * divide_up(g.out[1], out_lines) * divide_up(g.out[2], out_pixels);
  }

  QBox at(const Geometry& g, int64_t index) const {
    const int64_t across = divide_up(g.out[2], out_pixels), down = divide_up(g.out[1], out_lines);
    QBox box;
    box.begin[2] = index % across * out_pixels, box.begin[1] = index / across % down * out_lines;
    box.begin[0] = index / across / down % g.out[0], box.batch = index / across / down / g.out[0];
    box.end[0] = box.begin[0] + 1;
    box.end[1] = std::min(box.begin[1] + out_lines, g.out[1]);
    box.end[2] = std::min(box.begin[2] + out_pixels, g.out[2]);
    // The room is not more than the measured one.
    if (!reach(g, 1, box.end[1] - box.begin[1], &box.lines)) box.lines = lines;
    if (!reach(g, 2, box.end[2] - box.begin[2], &box.line)) box.line = line;
    return box;
  }

 private:
  // Returns whether the thread with the most boxes has at most a quarter more than all have on average.
  bool even(const Geometry& g, int64_t threads) const {
    const int64_t boxes = count(g);
    return divide_up(boxes, threads) * threads * 4 <= boxes * 5;
  }
  void cut(const Geometry& g, int axis, int64_t threads, int64_t* size) {
    for (int64_t n = divide_up(g.out[axis], *size); n < g.out[axis] && !even(g, threads); ++n)
      *size = divide_up(g.out[axis], n + 1);
  }
};

// Calls f(slot, box) for each box; a slot belongs to one thread.
template <class F>
void parallel_boxes(ThreadPool* threads, const Geometry& g, const QBoxes& boxes, F&& f) {
  const int64_t count = boxes.count(g);
  parallel_slots(threads, std::min(count, threads_of(threads)), count,
                 [&](int64_t slot, int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) f(slot, boxes.at(g, i));
                 });
}

// Counts the workspace of `threads` threads that share the boxes of a plan: share(plan, n) sets
// plan->scratch, the bytes of each of n. A session may have half of them, and so on. False if it overflows.
template <class Plan, class Share>
[[nodiscard]] bool scratch_of_threads(const Plan& plan, int threads, Share&& share, int64_t* bytes) {
  *bytes = 0;
  for (int64_t n = std::max(threads, 1); n > 0; n /= 2) {
    Plan shared = plan;
    int64_t all = 0;
    if (!share(&shared, n) || !checked_mul(shared.scratch, n, &all)) return false;
    *bytes = std::max(*bytes, all);
  }
  return true;
}

}  // namespace sinter::simd

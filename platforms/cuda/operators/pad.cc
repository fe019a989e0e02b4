// Pad, and Tile, which is a move or a pad that wraps.
#include <algorithm>

#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"

namespace sinter::cuda {
namespace {

bool padded(const PadArguments& a, int i) {
  return a.axes[i].begin != 0 || static_cast<uint32_t>(a.axes[i].dim) != a.box.dims[i].divisor;
}

void set_pattern(PadKind kind, PadAxis* axis) {
  const int64_t n = axis->dim;
  if (kind == PadKind::kConstant || kind == PadKind::kEdge || n < 1) return;
  const int64_t period = kind == PadKind::kWrap || n == 1 ? n : 2 * (n - 1);
  axis->period = Divider(period);
  axis->phase = static_cast<uint32_t>((period - axis->begin % period) % period);
}

// An axis without pads becomes part of the one before it where that one's steps span it; pads are then
// multiples. An axis that repeats its elements cannot be merged if it is padded.
void merge_padded_axes(PadArguments* a) {
  int rank = 0;
  for (int i = 0; i < a->box.rank; ++i) {
    const Divider dim = a->box.dims[i];
    const bool plain = !padded(*a, i);
    if (plain && dim.divisor == 1) continue;
    bool merge = rank > 0 && plain && (a->kind == PadKind::kConstant || !padded(*a, rank - 1));
    for (const Steps& s : a->steps) merge = merge && s.of[rank - 1] == s.of[i] * int64_t{dim.divisor};
    const int to = merge ? rank - 1 : rank++;
    PadAxis axis = a->axes[i];
    if (merge) {
      const auto d = static_cast<int32_t>(dim.divisor);
      axis.begin = a->axes[to].begin * d, axis.dim = a->axes[to].dim * d;
      a->box.dims[to] = Divider(int64_t{a->box.dims[to].divisor} * dim.divisor);
    } else {
      a->box.dims[to] = dim;
    }
    a->axes[to] = axis;
    for (Steps& s : a->steps) s.of[to] = s.of[i];
  }
  a->box.rank = rank;
}

// Widens elements if the last axis and its pads consist of wider ones.
void widen_padded(PadArguments* a) {
  if (a->box.rank == 0) return;
  const int last = a->box.rank - 1;
  PadAxis& axis = a->axes[last];
  if (a->kind != PadKind::kConstant && padded(*a, last)) return;
  PadArguments wide = *a;
  Steps* const both[] = {&wide.steps[0], &wide.steps[1]};
  // All three of these are multiples of it.
  const int width = a->width, begin = axis.begin, dim = axis.dim;
  wide.box.dims[last] = Divider(int64_t{a->box.dims[last].divisor | static_cast<uint32_t>(begin | dim)});
  const int widened = widen_elements(&wide.box, both, width);
  const auto factor = widened / width;
  a->width = widened;
  axis.begin /= factor, axis.dim /= factor;
  a->box.dims[last] = Divider(a->box.dims[last].divisor / static_cast<uint32_t>(factor));
  a->box.size /= static_cast<uint32_t>(factor);
  a->steps[0] = wide.steps[0], a->steps[1] = wide.steps[1];
}

// The fields box, axes (begin, dim), kind and fill are set.
Status launch_pad(Lowering& l, PadArguments* a) {
  const TensorView &x = l.in(0), &y = l.out(0);
  a->to = y.data, a->from = x.data;
  a->steps[0] = steps_of(y, a->box), a->steps[1] = steps_of(x, a->box);
  a->width = a->fill_width = static_cast<int32_t>(byte_width(y.dtype));
  for (int i = 0; i < a->box.rank; ++i)
    SINTER_RETURN_UNLESS(int64_t{a->box.dims[i].divisor} + 2 * int64_t{a->axes[i].dim} < INT32_MAX,
                         unsupported("an axis is too long to be padded"));
  merge_padded_axes(a);
  if (x.dense() && y.dense()) widen_padded(a);
  for (int i = 0; i < a->box.rank; ++i) set_pattern(a->kind, &a->axes[i]);
  return l.launch<Kernel::k_pad>({.blocks = {blocks_for(a->box.size, threads_of(Kernel::k_pad))}}, *a);
}

}  // namespace

Status lower_Pad(Lowering& l) {
  const auto& attrs = l.attrs<PadAttrs>();
  const TensorView &x = l.in(0), &y = l.out(0);
  SINTER_RETURN_IF_ERROR(check_movable(x));
  SINTER_RETURN_IF_ERROR(check_movable(y));
  PadArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  if (a.box.size == 0) return ok_status();
  a.kind = static_cast<PadKind>(attrs.mode);
  for (int i = 0; i < x.rank; ++i) {
    a.axes[i].begin = static_cast<int32_t>(attrs.pads[i]);
    a.axes[i].dim = static_cast<int32_t>(x.dims[i]);
  }
  if (l.has_input(1)) a.fill = l.in(1).data;
  return launch_pad(l, &a);
}

Status lower_Tile(Lowering& l) {
  const auto& repeats = l.attrs<TileAttrs>().repeats;
  const TensorView &x = l.in(0), &y = l.out(0);
  SINTER_RETURN_IF_ERROR(check_movable(x));
  SINTER_RETURN_IF_ERROR(check_movable(y));
  PadArguments a;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &a.box));
  if (a.box.size == 0) return ok_status();
  // Tile is one move, in which every axis becomes two: that of the repetitions, along which the operand does
  // not advance, and its own.
  MoveArguments m;
  m.to = y.data, m.from = x.data, m.width = static_cast<int32_t>(byte_width(y.dtype));
  m.box.size = a.box.size;
  bool fits = true;
  for (int i = 0; i < 2 * x.rank; ++i) {
    const int axis = i / 2;
    const bool own = i % 2 == 1;
    const int64_t dim = own ? x.dims[axis] : repeats[axis];
    if (dim == 1) continue;
    const int64_t to = own ? y.strides[axis] : y.strides[axis] * x.dims[axis],
                  from = own ? x.strides[axis] : 0;
    const int last = m.box.rank - 1;
    if (last >= 0 && m.steps[0].of[last] == to * dim && m.steps[1].of[last] == from * dim) {
      m.box.dims[last] = Divider(int64_t{m.box.dims[last].divisor} * dim);
      m.steps[0].of[last] = to, m.steps[1].of[last] = from;
      continue;
    }
    fits = fits && m.box.rank < kBoxRank;
    if (!fits) break;
    m.steps[0].of[m.box.rank] = to, m.steps[1].of[m.box.rank] = from;
    m.box.dims[m.box.rank++] = Divider(dim);
  }
  if (fits) {
    finish_move(&m);
    return launch_move(l, m);
  }
  a.kind = PadKind::kWrap;
  for (int i = 0; i < x.rank; ++i) a.axes[i].dim = static_cast<int32_t>(x.dims[i]);
  return launch_pad(l, &a);
}

}  // namespace sinter::cuda

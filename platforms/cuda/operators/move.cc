// Copy, View, Slice, Broadcast and Transpose: each is one move. Concat is one for each input.
#include "platforms/cuda/operators/move.h"

#include <algorithm>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

// Shorter axes would leave most lanes of a tile idle.
constexpr uint32_t kShortestOfTile = 8;

// Returns the axis, other than the last, along which elements of `width` bytes are neighbours; -1: none.
int dense_axis(const Box& box, const Steps& steps, int width) {
  for (int i = box.rank - 2; i >= 0; --i)
    if (steps.of[i] == width) return i;
  return -1;
}

// Returns false if the move does not gain by tiles.
bool tile_move(const MoveArguments& m, TransposeArguments* t) {
  const int b = m.box.rank - 1;
  if (b < 1 || m.width > 8 || m.steps[0].of[b] != m.width || m.steps[1].of[b] == m.width) return false;
  const int a = dense_axis(m.box, m.steps[1], m.width);
  if (a < 0 || m.box.dims[a].divisor < kShortestOfTile || m.box.dims[b].divisor < kShortestOfTile)
    return false;
  t->to = m.to, t->from = m.from, t->width = m.width;
  t->a_dim = m.box.dims[a].divisor, t->b_dim = m.box.dims[b].divisor;
  t->to_a_step = m.steps[0].of[a], t->from_b_step = m.steps[1].of[b];
  t->planes.size = m.box.size / t->a_dim / t->b_dim;
  for (int i = 0; i < b; ++i) {
    if (i == a) continue;
    const int k = t->planes.rank++;
    t->planes.dims[k] = m.box.dims[i];
    for (int operand = 0; operand < 2; ++operand) t->steps[operand].of[k] = m.steps[operand].of[i];
  }
  const auto tiles_of = [](uint32_t dim) { return (int64_t{dim} + kTransposeTile - 1) / kTransposeTile; };
  const int64_t tiles = t->planes.size * tiles_of(t->a_dim) * tiles_of(t->b_dim);
  if (tiles > INT32_MAX) return false;
  t->a_tiles = Divider(tiles_of(t->a_dim)), t->b_tiles = Divider(tiles_of(t->b_dim));
  t->tiles = static_cast<uint32_t>(tiles);
  return true;
}

uint32_t blocks_of(const MoveArguments& a) { return blocks_for(a.wide_size, threads_of(Kernel::k_move)); }

}  // namespace

Status check_movable(const TensorView& view) {
  SINTER_RETURN_UNLESS(byte_width(view.dtype) > 0, unsupported("elements are smaller than a byte"));
  SINTER_RETURN_UNLESS(steps_are_whole(view), unsupported("elements are not whole elements apart"));
  return ok_status();
}

void finish_move(MoveArguments* a) {
  Steps* const both[] = {&a->steps[0], &a->steps[1]};
  merge_axes(&a->box, both);
  Box box = a->box;
  Steps to = a->steps[0], from = a->steps[1];
  Steps* const wide[] = {&to, &from};
  a->wide = widen_elements(&box, wide, a->width);
  a->wide_size = box.size;
  a->wide_dim = box.dims[box.rank > 0 ? box.rank - 1 : 0];
}

Status make_move(const TensorView& from, const TensorView& to, MoveArguments* a) {
  SINTER_RETURN_IF_ERROR(check_movable(from));
  SINTER_RETURN_IF_ERROR(check_movable(to));
  SINTER_RETURN_IF_ERROR(box_of(to.shape(), &a->box));
  a->to = to.data, a->from = from.data;
  a->steps[0] = steps_of(to, a->box), a->steps[1] = steps_of(from, a->box);
  a->width = static_cast<int32_t>(byte_width(to.dtype));
  finish_move(a);
  return ok_status();
}

Status launch_move(Lowering& l, const MoveArguments& a) {
  if (a.box.size == 0) return ok_status();
  TransposeArguments t;
  if (tile_move(a, &t)) {
    constexpr uint32_t kShared = kTransposeTile * (kTransposeTile + 1);
    return l.launch<Kernel::k_transpose>(
        {.blocks = {blocks_for(t.tiles, 1)}, .shared_bytes = kShared * static_cast<uint32_t>(t.width)}, t);
  }
  return l.launch<Kernel::k_move>({.blocks = {blocks_of(a)}}, a);
}

Status add_move(Lowering& l, const TensorView& from, const TensorView& to) {
  MoveArguments a;
  SINTER_RETURN_IF_ERROR(make_move(from, to, &a));
  return launch_move(l, a);
}

namespace {

// Moves the bytes of dense values, whatever their types are.
Status add_move_of_bytes(Lowering& l, const TensorView& from, const TensorView& to) {
  MoveArguments a;
  const int64_t bytes[] = {from.dense_bytes()};
  SINTER_RETURN_IF_ERROR(box_of(bytes, &a.box));
  a.to = to.data, a.from = from.data, a.width = 1;
  a.steps[0].of[0] = a.steps[1].of[0] = 1;
  finish_move(&a);
  return launch_move(l, a);
}

}  // namespace

Status lower_View(Lowering& l) {
  SINTER_RETURN_UNLESS(l.call().out(0).dense(), unsupported("the result is not dense"));
  return add_move_of_bytes(l, l.in(0), l.out(0));
}

Status lower_Copy(Lowering& l) {
  if (!is_sub_byte(l.out(0).dtype)) return add_move(l, l.in(0), l.out(0));
  SINTER_RETURN_UNLESS(l.call().in(0).dense() && l.out(0).dense(),
                       unsupported("packed elements are copied only where they are dense"));
  return add_move_of_bytes(l, l.in(0), l.out(0));
}

Status lower_Broadcast(Lowering& l) { return add_move(l, l.in(0), l.out(0)); }

Status lower_Transpose(Lowering& l) {
  const auto& perm = l.attrs<TransposeAttrs>().perm;
  TensorView from = l.out(0);  // the input, with its axes in the result's order
  const TensorView& x = l.in(0);
  from.data = x.data;
  for (int i = 0; i < from.rank; ++i) from.strides[i] = x.strides[perm[i]];
  return add_move(l, from, l.out(0));
}

Status lower_Slice(Lowering& l) {
  const TensorView& x = l.in(0);
  if (l.out(0).size() == 0) return ok_status();
  SINTER_RETURN_IF_ERROR(check_movable(x));
  const auto& a = l.attrs<SliceAttrs>();
  TensorView window = l.out(0);
  window.data = x.data;
  for (int i = 0; i < x.rank; ++i) {
    window.data = behind(window.data, a.starts[i] * x.strides[i]);
    window.strides[i] = a.sizes[i] > 1 ? a.steps[i] * x.strides[i] : 0;
  }
  return add_move(l, window, l.out(0));
}

Status lower_Concat(Lowering& l) {
  const auto axis = static_cast<int>(l.attrs<ConcatAttrs>().axis);
  const TensorView& y = l.out(0);
  SINTER_RETURN_IF_ERROR(check_movable(y));
  TensorView part = y;
  MovesArguments a;
  int count = 0;
  uint32_t blocks = 1;
  const size_t inputs = l.call().inputs.size();
  for (size_t i = 0; i < inputs; ++i) {
    SINTER_RETURN_UNLESS(l.is_constant(i) || !l.call().in(i).constant, unsupported("too many constants"));
    const TensorView& x = l.in(i);
    part.dims[axis] = x.dims[axis];
    if (x.size() > 0) {
      SINTER_RETURN_IF_ERROR(make_move(x, part, &a.moves[count]));
      blocks = std::max(blocks, blocks_of(a.moves[count]));
      ++count;
    }
    part.data = behind(part.data, x.dims[axis] * y.strides[axis]);
    if (count == 0 || (count < kMovesTogether && i + 1 < inputs)) continue;
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_moves>({.blocks = {blocks, static_cast<uint32_t>(count)}}, a));
    for (auto& move : a.moves) move = {};  // a = {} takes the stack of a second one
    count = 0, blocks = 1;
  }
  return ok_status();
}

}  // namespace sinter::cuda

// Moves elements between places that differ in their strides: Copy, and every operation that can be written
// as one.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/kernels/move/move.h"

namespace sinter::cuda {
namespace {

// `last` are the elements of T along the last axis.
struct LastAxis {
  Divider dim;
  int64_t to, from;  // bytes from an element to the next
};

template <class T>
SINTER_DEVICE void move_all(const MoveArguments& a, uint32_t size, const LastAxis& last) {
  for (int64_t n = global_thread(); n < size; n += global_threads()) {
    auto rest = static_cast<uint32_t>(n);
    uint32_t at = rest;
    if (a.box.rank > 1) rest = last.dim.divide(rest, &at);
    int64_t to = at * last.to, from = at * last.from;
    for (int i = a.box.rank - 2; i >= 0; --i) {
      at = rest;
      if (i > 0) rest = a.box.dims[i].divide(rest, &at);
      to += at * a.steps[0].of[i], from += at * a.steps[1].of[i];
    }
    store(a.to + to, load<T>(a.from + from));
  }
}

SINTER_DEVICE void move_box(const MoveArguments& a) {
  const bool wide = a.wide > a.width && aligned(a.to, a.from, a.wide);
  const int i = a.box.rank > 0 ? a.box.rank - 1 : 0;
  const LastAxis last = wide ? LastAxis{a.wide_dim, a.wide, a.wide}
                             : LastAxis{a.box.dims[i], a.steps[0].of[i], a.steps[1].of[i]};
  const uint32_t size = wide ? a.wide_size : a.box.size;
  for_width(wide ? a.wide : a.width,
            [&](auto type) { move_all<typename decltype(type)::type>(a, size, last); });
}

template <class T>
SINTER_DEVICE void transpose_tiles(const TransposeArguments& a) {
  constexpr int kPitch = kTransposeTile + 1;  // so that neither rows nor columns are in one bank
  const auto tile = shared_memory<T>(0, kTransposeTile * kPitch);
  const int lines = block_threads() / kWarp;
  for (uint32_t n = block_x(); n < a.tiles; n += blocks_x()) {
    uint32_t a_tile, b_tile;
    uint32_t plane = a.b_tiles.divide(n, &b_tile);
    plane = a.a_tiles.divide(plane, &a_tile);
    int64_t offsets[2];
    offsets_of(a.planes, a.steps, plane, offsets);
    const uint32_t a_first = a_tile * kTransposeTile, b_first = b_tile * kTransposeTile;
    const auto column = static_cast<uint32_t>(lane());
    const std::byte* from = a.from + offsets[1] + b_first * a.from_b_step +
                            int64_t{a_first + column} * static_cast<int>(sizeof(T));
    for (int r = warp_index(); r < kTransposeTile; r += lines)
      if (a_first + column < a.a_dim && b_first + static_cast<uint32_t>(r) < a.b_dim)
        tile[r * kPitch + lane()] = load<T>(from + r * a.from_b_step);
    barrier();
    std::byte* to =
        a.to + offsets[0] + a_first * a.to_a_step + int64_t{b_first + column} * static_cast<int>(sizeof(T));
    for (int r = warp_index(); r < kTransposeTile; r += lines)
      if (b_first + column < a.b_dim && a_first + static_cast<uint32_t>(r) < a.a_dim)
        store<T>(to + r * a.to_a_step, tile[lane() * kPitch + r]);
    barrier();
  }
}

}  // namespace

SINTER_KERNEL(move, MoveArguments) { move_box(a); }

SINTER_KERNEL(moves, MovesArguments) { move_box(a.moves[block_y()]); }

SINTER_KERNEL(transpose, TransposeArguments) {
  switch (a.width) {
    case 1:
      return transpose_tiles<uint8_t>(a);
    case 2:
      return transpose_tiles<uint16_t>(a);
    case 4:
      return transpose_tiles<uint32_t>(a);
    default:
      return transpose_tiles<uint64_t>(a);
  }
}

}  // namespace sinter::cuda

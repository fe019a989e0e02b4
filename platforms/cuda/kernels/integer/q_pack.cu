// Packs operands of integer products as rows along the depth, of a multiple of 16 elements.
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/integer/q_pack.h"

namespace sinter::cuda {
namespace {

constexpr int kTile = 32;  // elements along both sides
constexpr int kLines = 8;  // of a tile at once, of 256 threads

template <class T>
SINTER_DEVICE void turn(const QTurnArguments& a) {
  const Shared<uint32_t> tile = shared_memory<uint32_t>(0, kTile * (kTile + 1));
  const int across = thread_index() % kTile, line = thread_index() / kTile;
  const uint32_t k0 = block_x() * kTile, n0 = block_y() * kTile, number = block_z();
  const T* from = reinterpret_cast<const T*>(a.from) + int64_t{number} * a.depth * a.columns;
  T* to = reinterpret_cast<T*>(a.to) + int64_t{number} * a.columns * a.pitch;
  // This reads along the operand's last axis.
  for (int i = line; i < kTile; i += kLines) {
    const uint32_t k = k0 + static_cast<uint32_t>(a.across != 0 ? i : across),
                   n = n0 + static_cast<uint32_t>(a.across != 0 ? across : i);
    auto v = static_cast<T>(a.fill);
    if (k < a.depth && n < a.columns)
      v = from[a.across != 0 ? int64_t{k} * a.columns + n : int64_t{n} * a.depth + k];
    tile[i * (kTile + 1) + across] = static_cast<uint32_t>(v);
  }
  barrier();
  for (int i = line; i < kTile; i += kLines) {
    const uint32_t k = k0 + static_cast<uint32_t>(across), n = n0 + static_cast<uint32_t>(i);
    const uint32_t v = a.across != 0 ? tile[across * (kTile + 1) + i] : tile[i * (kTile + 1) + across];
    if (k < a.pitch && n < a.columns) to[int64_t{n} * a.pitch + k] = static_cast<T>(v);
  }
}

}  // namespace

SINTER_KERNEL(q_pack, QPackArguments) {
  const int64_t all = int64_t{a.columns} * a.pitch.divisor;
  for (int64_t i = global_thread(); i < all; i += global_threads()) {
    uint32_t k;
    const uint32_t column = a.pitch.divide(static_cast<uint32_t>(i), &k);
    a.to[i] = k < a.depth ? a.from[int64_t{column} * a.filter + a.taps.place(k)] : std::byte{0};
  }
}

SINTER_KERNEL(q_turn, QTurnArguments) {
  if (a.width == 1)
    turn<uint8_t>(a);
  else
    turn<uint16_t>(a);
}

}  // namespace sinter::cuda

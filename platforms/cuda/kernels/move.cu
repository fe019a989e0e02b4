// Moves elements between places that differ in their strides: Copy, and every operation that can be written
// as one.
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/move.h"

namespace sinter::cuda {
namespace {

struct alignas(16) Sixteen {
  uint64_t half[2];
};

template <class T>
SINTER_DEVICE void move_all(const MoveArguments& a) {
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    const auto i = static_cast<uint32_t>(n);
    *reinterpret_cast<T*>(a.to + offset_of(a.box, a.to_steps, i)) =
        *reinterpret_cast<const T*>(a.from + offset_of(a.box, a.from_steps, i));
  }
}

}  // namespace

SINTER_KERNEL(move, MoveArguments) {
  switch (a.width) {
    case 1:
      return move_all<uint8_t>(a);
    case 2:
      return move_all<uint16_t>(a);
    case 4:
      return move_all<uint32_t>(a);
    case 8:
      return move_all<uint64_t>(a);
    default:
      return move_all<Sixteen>(a);
  }
}

}  // namespace sinter::cuda

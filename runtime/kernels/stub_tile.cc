#include "runtime/kernels/reference.h"

namespace sinter {

const Kernel kTileKernel = {Op::kTile, [](OpCall&) { return unsupported("Tile is not implemented yet"); },
                            nullptr, nullptr};

}  // namespace sinter

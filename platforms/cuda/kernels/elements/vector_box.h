// Elements of a box, four along its last axis at a time where that axis permits it.
#pragma once

#include "platforms/cuda/grid/box.h"

namespace sinter::cuda {

// Item n of `box` is elements per * n to per * n + per - 1 of all, up to the last one of `size`.
struct VectorBox {
  Box box;
  uint32_t size = 0;
  uint32_t per = 1;  // 4 or 1
};

// An operand: the places of items, and the distance of an item's elements.
struct VectorSteps {
  Steps items;
  int64_t along = 0;
};

}  // namespace sinter::cuda

// Arguments of kernels/index/scatter.cu.
//
// A location is an element of the data or a block of neighbours, to which one tuple of indices points. Each
// has the number of an update, and each update that of another one for the same location; -1: there is none.
// The list of a location is brought into the order of its updates before it is applied, so that results do
// not depend on the order in which threads run.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/grid/fault.h"
#include "runtime/core/dtype.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {

struct ScatterLists {
  int32_t* first = nullptr;  // of each location
  int32_t* next = nullptr;   // of each update; null: only the last update of a location counts
};

// Puts the updates of a box into the lists of their locations.
struct ScatterLinkArguments {
  const std::byte* indices = nullptr;
  Box box;
  Steps steps[2];                 // of the indices, of the location without the axes that they choose from
  int32_t depth = 1;              // indices of an update, one behind the other
  int64_t dims[kBoxRank] = {};    // of the axes that they choose from
  int64_t places[kBoxRank] = {};  // locations from an element to the next along those
  int32_t index_width = 8;
  ScatterLists lists;
  FaultPlace fault;
};

struct ScatterOrderArguments {
  ScatterLists lists;
  uint32_t locations = 0;
};

// Computes to[n] = from[n], combined with the updates of its location.
struct ScatterApplyArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* updates = nullptr;
  Box box;
  Steps steps[2];  // of `to`, of `from`
  Divider block;   // elements of a location
  Box update_box;  // of the updates without their blocks
  Steps update_steps;
  ScatterLists lists;
  int32_t width = 4;  // scatter_write; kind and type are scatter_combine's
  ScatterReduction kind = ScatterReduction::kNone;
  DType type = DType::kFloat32;
};

}  // namespace sinter::cuda

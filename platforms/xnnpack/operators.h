// The library's operators for our calls: created and shaped, then given their addresses.
#pragma once

#include "platforms/xnnpack/capabilities.h"
#include "platforms/xnnpack/memory.h"

namespace sinter::xnnpack {

struct Built {
  xnn_operator_t op = nullptr;
  size_t workspace = 0;
};

// Needs a call that accept() took. `threads` may be null. In a dry run it may stop when memory is refused;
// *extra is then what the rest would have taken.
Status build(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built, size_t* extra);
// Gives the final addresses.
Status set_up(const OpCall& call, xnn_operator_t op, void* workspace);

}  // namespace sinter::xnnpack

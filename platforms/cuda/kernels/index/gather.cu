// Gather, GatherElements, GatherNd: each element of the result reads its indices, and then the place to which
// they point.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/index/gather.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void gather(const GatherArguments& a) {
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    int64_t offsets[3];
    offsets_of(a.box, a.steps, static_cast<uint32_t>(n), offsets);
    bool inside = true;
    for (int k = 0; k < a.depth; ++k) {
      int64_t index;
      if (!read_index(a.indices + offsets[2] + k * a.index_width, a.index_width, a.dims[k], &index))
        inside = false, index = 0;
      offsets[1] += index * a.places[k];
    }
    if (inside)
      store(a.to + offsets[0], load<T>(a.from + offsets[1]));
    else
      report_fault(a.fault, FaultCode::kIndex, n);
  }
}

}  // namespace

SINTER_KERNEL(gather, GatherArguments) {
  for_width(a.width, [&](auto type) { gather<typename decltype(type)::type>(a); });
}

}  // namespace sinter::cuda

// The argument of each kernel, by its number. Includes the header of every unit.
#pragma once

#include "platforms/cuda/kernels/attention.h"
#include "platforms/cuda/kernels/check_length.h"
#include "platforms/cuda/kernels/convert.h"
#include "platforms/cuda/kernels/cumulate.h"
#include "platforms/cuda/kernels/depthwise.h"
#include "platforms/cuda/kernels/dft.h"
#include "platforms/cuda/kernels/dynamic_range.h"
#include "platforms/cuda/kernels/elements.h"
#include "platforms/cuda/kernels/find.h"
#include "platforms/cuda/kernels/gather.h"
#include "platforms/cuda/kernels/group_norm.h"
#include "platforms/cuda/kernels/kernel_list.h"
#include "platforms/cuda/kernels/layer_norm.h"
#include "platforms/cuda/kernels/linear_attention.h"
#include "platforms/cuda/kernels/low_bit.h"
#include "platforms/cuda/kernels/move.h"
#include "platforms/cuda/kernels/nms.h"
#include "platforms/cuda/kernels/pad.h"
#include "platforms/cuda/kernels/pool.h"
#include "platforms/cuda/kernels/product.h"
#include "platforms/cuda/kernels/q_depthwise.h"
#include "platforms/cuda/kernels/q_elements.h"
#include "platforms/cuda/kernels/q_pack.h"
#include "platforms/cuda/kernels/q_product.h"
#include "platforms/cuda/kernels/q_recurrent.h"
#include "platforms/cuda/kernels/q_rows.h"
#include "platforms/cuda/kernels/quantize_rows.h"
#include "platforms/cuda/kernels/recurrent.h"
#include "platforms/cuda/kernels/reduce.h"
#include "platforms/cuda/kernels/resize.h"
#include "platforms/cuda/kernels/rope.h"
#include "platforms/cuda/kernels/sample.h"
#include "platforms/cuda/kernels/scatter.h"
#include "platforms/cuda/kernels/sequence.h"
#include "platforms/cuda/kernels/softmax.h"
#include "platforms/cuda/kernels/sort.h"

namespace sinter::cuda {

template <Kernel kernel>
struct ArgumentsOf;
#define SINTER_CUDA_KERNEL(name, unit, Arguments, threads, cooperation) \
  template <>                                                           \
  struct ArgumentsOf<Kernel::k_##name> {                                \
    using Type = Arguments;                                             \
  };
#include "platforms/cuda/kernels/kernels.def"
#undef SINTER_CUDA_KERNEL

}  // namespace sinter::cuda

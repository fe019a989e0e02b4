// The argument of each kernel, by its number. The file includes the header of every unit.
#pragma once

#include "platforms/cuda/kernels/attention/attention.h"
#include "platforms/cuda/kernels/attention/linear_attention.h"
#include "platforms/cuda/kernels/attention/rope.h"
#include "platforms/cuda/kernels/elements/convert.h"
#include "platforms/cuda/kernels/elements/elements.h"
#include "platforms/cuda/kernels/index/check_length.h"
#include "platforms/cuda/kernels/index/find.h"
#include "platforms/cuda/kernels/index/gather.h"
#include "platforms/cuda/kernels/index/nms.h"
#include "platforms/cuda/kernels/index/scatter.h"
#include "platforms/cuda/kernels/index/sequence.h"
#include "platforms/cuda/kernels/index/sort.h"
#include "platforms/cuda/kernels/integer/dynamic_range.h"
#include "platforms/cuda/kernels/integer/q_depthwise.h"
#include "platforms/cuda/kernels/integer/q_elements.h"
#include "platforms/cuda/kernels/integer/q_pack.h"
#include "platforms/cuda/kernels/integer/q_product.h"
#include "platforms/cuda/kernels/integer/q_recurrent.h"
#include "platforms/cuda/kernels/integer/q_rows.h"
#include "platforms/cuda/kernels/integer/quantize_rows.h"
#include "platforms/cuda/kernels/kernel_list.h"
#include "platforms/cuda/kernels/low_bit/low_bit.h"
#include "platforms/cuda/kernels/move/move.h"
#include "platforms/cuda/kernels/move/pad.h"
#include "platforms/cuda/kernels/product/product.h"
#include "platforms/cuda/kernels/product/recurrent.h"
#include "platforms/cuda/kernels/reduce/cumulate.h"
#include "platforms/cuda/kernels/reduce/dft.h"
#include "platforms/cuda/kernels/reduce/group_norm.h"
#include "platforms/cuda/kernels/reduce/layer_norm.h"
#include "platforms/cuda/kernels/reduce/reduce.h"
#include "platforms/cuda/kernels/reduce/softmax.h"
#include "platforms/cuda/kernels/window/depthwise.h"
#include "platforms/cuda/kernels/window/pool.h"
#include "platforms/cuda/kernels/window/resize.h"
#include "platforms/cuda/kernels/window/sample.h"

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

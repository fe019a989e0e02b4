// x86_64: measured on a machine with AVX-512, one thread, by bench/op_backends.cc (lowest of five
// repetitions); time of simd over that of xnnpack:
//   Conv 0.95 to 2.4, but 0.2 to 0.7 for up to 4 output channels of a window, DepthwiseConv 1.1 to 1.5, but
//   0.8 for up to 16 channels, MaxPool 2.2 to 2.3, PRelu 1.3 to 2.7, Add 1.0 to 1.3, Sub 1.0, Mul 0.95
//   to 1.3, Div 1.0, MatMul 0.9 to 1.1, but 0.2 for one row by a computed matrix, which XNNPACK packs for
//   every run, FullyConnected 0.7 to 0.9, ConvTranspose 0.4 to 0.9, AvgPool 0.5 to 0.85;
//   QConv 0.6 to 0.75 for more than 16 output channels, else 1.1 to 1.6, QDepthwiseConv 0.35 to 0.85,
//   QFullyConnected 0.65 for many rows, 1.0 to 1.2 for one.
// ARM has not been measured; only what follows from the work done is taken over.
#include "platforms/xnnpack/planning/yields.h"

#include "runtime/core/checked.h"
#include "runtime/core/op.h"

namespace sinter::xnnpack {
namespace {

enum class When { kAlways, kOneRowByComputed, kNarrow, kFewOutputs, kManyWindows, kManyOutputs, kManyRows };

struct Row {
  Op op;
  When when;
  bool measured_on_x86_only;
};

constexpr Row kYields[] = {
    {Op::kAvgPool, When::kAlways, true},           {Op::kConv, When::kFewOutputs, true},
    {Op::kConv, When::kManyWindows, false},        {Op::kConvTranspose, When::kAlways, true},
    {Op::kDepthwiseConv, When::kNarrow, true},     {Op::kFullyConnected, When::kAlways, true},
    {Op::kMatMul, When::kOneRowByComputed, false}, {Op::kQConv, When::kManyOutputs, true},
    {Op::kQDepthwiseConv, When::kAlways, true},    {Op::kQFullyConnected, When::kManyRows, true},
};

constexpr int64_t kNarrowChannels = 16;
constexpr int64_t kFewChannels = 4;
// XNNPACK keeps a pointer per output pixel and tap: from here on they take more than 32 MB.
constexpr int64_t kMostPointers = int64_t{1} << 22;

bool applies(When when, const OpCall& call) {
  const TensorView &a = call.in(0), &y = call.out(0);
  switch (when) {
    case When::kAlways:
      return true;
    case When::kOneRowByComputed:
      return !call.in(1).constant && a.rank >= 2 && a.dims[a.rank - 2] == 1;
    case When::kNarrow:
      return y.rank > 0 && y.dims[y.rank - 1] <= kNarrowChannels;
    case When::kManyOutputs:
      return y.dims[y.rank - 1] > kNarrowChannels * call.attrs<QConvAttrs>().group;
    case When::kManyRows:
      return a.size() > 4 * a.dims[a.rank - 1];
    case When::kFewOutputs: {
      const TensorView& w = call.in(1);
      bool window = false;
      for (int i = 1; i + 1 < w.rank; ++i) window |= w.dims[i] != 1;
      return window && y.dims[y.rank - 1] <= kFewChannels && call.attrs<ConvAttrs>().group == 1;
    }
    case When::kManyWindows: {
      const TensorView& w = call.in(1);
      int64_t pointers = 1;
      for (int i = 1; i + 1 < y.rank; ++i)
        if (!checked_mul(pointers, y.dims[i], &pointers) || !checked_mul(pointers, w.dims[i], &pointers))
          return true;
      return pointers >= kMostPointers;
    }
  }
  return false;
}

}  // namespace

bool yields(const Target& target, const OpCall& call) {
  for (const Row& row : kYields)
    if (row.op == call.op && applies(row.when, call) &&
        (!row.measured_on_x86_only || target.architecture == Architecture::kX86_64))
      return true;
  return false;
}

}  // namespace sinter::xnnpack

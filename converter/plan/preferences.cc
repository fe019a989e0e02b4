// x86_64: measured on a machine with AVX-512, one thread, by bench/op_backends.cc (lowest of five
// repetitions); time of simd over that of xnnpack:
//   Conv 1.0 to 3.3, DepthwiseConv 1.5 to 4.0, MaxPool 2.1 to 2.5, PRelu 1.3 to 2.9, Add 1.0 to 1.3, Sub,
//   Mul, Div 1.0 to 1.3, MatMul 1.0 to 1.1, but 0.2 for one row by a computed matrix, which XNNPACK packs for
//   every run, FullyConnected 0.8 to 0.9, ConvTranspose 0.4 to 0.9, AvgPool 0.5 to 0.8.
// ARM has not been measured; only what follows from the work done is taken over.
#include "converter/plan/preferences.h"

#include "runtime/core/op.h"

namespace sinter::convert {
namespace {

enum class When { kAlways, kOneRowByComputed };

struct Row {
  Op op;
  When when;
  bool measured_on_x86_only;
};

constexpr Row kPrefersSimd[] = {
    {Op::kAvgPool, When::kAlways, true},
    {Op::kConvTranspose, When::kAlways, true},
    {Op::kFullyConnected, When::kAlways, true},
    {Op::kMatMul, When::kOneRowByComputed, false},
};

bool applies(When when, const OpCall& call) {
  if (when == When::kAlways) return true;
  const TensorView& a = call.in(0);
  return !call.in(1).constant && a.rank >= 2 && a.dims[a.rank - 2] == 1;
}

}  // namespace

bool prefers_simd(const OpCall& call, std::string_view target) {
  for (const Row& row : kPrefersSimd)
    if (row.op == call.op && applies(row.when, call) && (!row.measured_on_x86_only || target == "x86_64"))
      return true;
  return false;
}

}  // namespace sinter::convert

// The three kinds of convolution in integers.
#include "runtime/kernels/conv_loops.h"
#include "runtime/kernels/quantized_linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

using namespace linear;

// A is the attributes of one of the rows.
template <class A>
struct QuantizedConv {
  static constexpr bool kDepthwise = kDepthwiseWindow<A>, kTransposed = kTransposedWindow<A>;

  static Status infer(OpCall& call) {
    WindowGeometry g;
    int64_t dims[kMaxRank];
    DType result = DType::kNone;
    SINTER_RETURN_IF_ERROR(conv_geometry<A>(call, &g, dims));
    SINTER_RETURN_IF_ERROR(
        check_quantized(call, quantized_settings(call.attrs<A>()), g.out_channels, &result));
    return give_output(call, 0, result, {dims, static_cast<size_t>(call.in(0).rank)});
  }

  // No phase of a transposed convolution takes more.
  static Status workspace(const OpCall& call, int threads, size_t* bytes) {
    WindowGeometry g;
    SINTER_RETURN_IF_ERROR(conv_geometry<A>(call, &g));
    return kTransposed ? product_workspace(conv_product(g), call.in(0).dtype, false, threads, bytes)
                       : conv_workspace(call, g, threads, bytes);
  }

  static Status run(const OpCall& call, RunContext& context) {
    WindowGeometry g;
    SINTER_RETURN_IF_ERROR(conv_geometry<A>(call, &g));
    g.set_steps(call);
    return for_quantized(call.in(0).dtype, [&](auto x) {
      const Quantized<decltype(x)> numerics(call, quantized_settings(call.attrs<A>()));
      if constexpr (kDepthwise)
        depthwise(call, g, numerics, context);
      else if constexpr (kTransposed)
        Transposed(call, g, numerics, context).run();
      else
        conv(call, g, numerics, context);
      return ok_status();
    });
  }

  static Status lead(const OpCall& call, size_t* bytes) {
    WindowGeometry g;
    SINTER_RETURN_IF_ERROR(conv_geometry<A>(call, &g));
    return kDepthwise ? windows_lead(call, g, 0, bytes) : conv_lead(call, g, bytes);
  }

  static constexpr Kernel kernel() {
    return {A::kOp, infer, kDepthwise ? nullptr : workspace, run, nullptr, kTransposed ? nullptr : lead};
  }
};

}  // namespace

const Kernel kQConvKernel = reference_kernel(QuantizedConv<QConvAttrs>::kernel());
const Kernel kQDepthwiseConvKernel = reference_kernel(QuantizedConv<QDepthwiseConvAttrs>::kernel());
const Kernel kQConvTransposeKernel = reference_kernel(QuantizedConv<QConvTransposeAttrs>::kernel());

}  // namespace sinter

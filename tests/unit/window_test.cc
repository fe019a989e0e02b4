// The decoding of windows, which kernels, platforms and planner share.
#include "runtime/backend/window.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/backend/validate.h"
#include "sinter/sinter.h"

namespace sinter::window::testing {
namespace {

using Dims = std::vector<int64_t>;

static_assert(WindowAttrs<ConvAttrs> && WindowAttrs<QAvgPoolAttrs>);
static_assert(!WindowAttrs<PadAttrs> && !WindowAttrs<FullyConnectedAttrs>);
static_assert(kPoolWindow<MaxPoolAttrs> && !kPoolWindow<QConvAttrs>);
static_assert(kTransposedWindow<QConvTransposeAttrs> && !kTransposedWindow<ConvAttrs>);
static_assert(kDepthwiseWindow<QDepthwiseConvAttrs> && kDepthwiseWindow<DepthwiseConvAttrs>);
static_assert(!kDepthwiseWindow<ConvTransposeAttrs> && !kDepthwiseWindow<AvgPoolAttrs>);

TensorView shaped(const Dims& dims) {
  TensorView v;
  v.dtype = DType::kFloat32;
  v.set_shape(dims);
  return v;
}

// Attributes whose numbers differ from axis to axis.
template <class A>
A numbered(int axes) {
  A a{};
  for (int i = 0; i < axes; ++i) a.strides.push(2 + i), a.dilations.push(1 + i);
  for (int i = 0; i < 2 * axes; ++i) a.pads.push(i);
  if constexpr (requires { a.count_include_pad; }) a.count_include_pad = 1;  // windows may be all padding
  if constexpr (kTransposedWindow<A>)
    for (int i = 0; i < axes; ++i) a.output_padding.push(i % 2);
  return a;
}

// x [2, 20, 21, 22, 6] with the first `axes` of the spatial axes; kernel 2, 3, 4.
template <class A>
struct Sample {
  A attrs;
  std::vector<TensorView> in, out{TensorView{}};
  OpCall call;
  Sample(int axes, const A& a) : attrs(a) {
    Dims x = {2}, kernel;
    for (int i = 0; i < axes; ++i) x.push_back(20 + i), kernel.push_back(2 + i);
    x.push_back(6);
    in.push_back(shaped(x));
    if constexpr (kPoolWindow<A>) {
      attrs.kernel = IntList(std::span<const int64_t>(kernel));
    } else if constexpr (kDepthwiseWindow<A>) {
      kernel.push_back(12);
      in.push_back(shaped(kernel));
    } else {
      attrs.group = 3;
      kernel.insert(kernel.begin(), 12), kernel.push_back(2);
      in.push_back(shaped(kernel));
    }
    call = {A::kOp, &attrs, in, out};
  }
};

template <class A>
void check_decoding() {
  for (int axes = 1; axes <= kMaxWindowAxes; ++axes) {
    SCOPED_TRACE(std::string(op_name(A::kOp)) + " of " + std::to_string(axes));
    Sample<A> sample(axes, numbered<A>(axes));
    ASSERT_TRUE(window_lists_fit(sample.attrs, axes));
    EXPECT_FALSE(window_lists_fit(sample.attrs, axes + 1));
    const Status inferred = infer(sample.call, reference_kernels());
    ASSERT_TRUE(inferred.ok()) << inferred.message;
    const WindowGeometry g = window_geometry<A>(sample.call);
    EXPECT_EQ(g.batch, 2);
    EXPECT_EQ(g.in_channels, 6);
    EXPECT_EQ(g.out_channels, kPoolWindow<A> ? 6 : 12);
    EXPECT_EQ(g.group, kPoolWindow<A> ? 1 : kDepthwiseWindow<A> ? 6 : 3);
    EXPECT_EQ(g.in_step, g.in_channels);
    EXPECT_EQ(g.out_step, g.out_channels);
    int64_t taps = 1;
    for (int j = 0; j < kMaxWindowAxes; ++j) {
      const int i = j - (kMaxWindowAxes - axes);
      const bool there = i >= 0;
      EXPECT_EQ(g.in[j], there ? 20 + i : 1);
      EXPECT_EQ(g.kernel[j], there ? 2 + i : 1);
      EXPECT_EQ(g.stride[j], there ? 2 + i : 1);
      EXPECT_EQ(g.dilation[j], there ? 1 + i : 1);
      EXPECT_EQ(g.pad[j], there ? i : 0);
      EXPECT_EQ(g.end_pad[j], there ? axes + i : 0);
      taps *= g.kernel[j];
      if (!there) continue;
      // Inference reads the same numbers.
      const WindowAxis w = window_axis<A>(sample.call, i);
      const int64_t length =
          kTransposedWindow<A> ? (g.in[j] - 1) * w.stride + w.extent() + w.output_padding - w.pad - w.end_pad
                               : (g.in[j] + w.pad + w.end_pad - w.extent()) / w.stride + 1;
      EXPECT_EQ(g.out[j], length);
      EXPECT_EQ(sample.out[0].dims[1 + i], length);
    }
    EXPECT_EQ(g.taps(), taps);
  }
}
TEST(Window, IsDecodedAsInferenceReadsIt) {
  check_decoding<ConvAttrs>();
  check_decoding<DepthwiseConvAttrs>();
  check_decoding<ConvTransposeAttrs>();
  check_decoding<AvgPoolAttrs>();
}

// Pools: strides and dilations of 1, no padding.
TEST(Window, EmptyListsAreDefaults) {
  Sample<MaxPoolAttrs> sample(2, {});
  ASSERT_TRUE(window_lists_fit(sample.attrs, 2));
  ASSERT_TRUE(infer(sample.call, reference_kernels()).ok());
  const WindowGeometry g = window_geometry<MaxPoolAttrs>(sample.call);
  for (int j = 0; j < kMaxWindowAxes; ++j) {
    EXPECT_EQ(g.stride[j], 1);
    EXPECT_EQ(g.dilation[j], 1);
    EXPECT_EQ(g.pad[j], 0);
    EXPECT_EQ(g.end_pad[j], 0);
  }
  EXPECT_EQ(g.out[1], 19);
  EXPECT_EQ(g.out[2], 19);
}

// Convolutions state every number; a list of another length is invalid.
TEST(Window, IncompleteListsAreRefused) {
  const auto refused = [](auto change) {
    ConvTransposeAttrs a = numbered<ConvTransposeAttrs>(2);
    change(a);
    Sample<ConvTransposeAttrs> sample(2, a);
    return infer(sample.call, reference_kernels()).code == Code::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& a) { a.strides = {}; }));
  EXPECT_TRUE(refused([](auto& a) { a.dilations = {1}; }));
  EXPECT_TRUE(refused([](auto& a) { a.pads = {0, 0, 0}; }));
  EXPECT_TRUE(refused([](auto& a) { a.output_padding = {0, 0, 0}; }));
}

// Pixels between those of other values.
TEST(Window, PixelsMayBeApart) {
  Sample<ConvAttrs> sample(2, numbered<ConvAttrs>(2));
  ASSERT_TRUE(infer(sample.call, reference_kernels()).ok());
  for (int i = 0; i < 3; ++i) sample.in[0].strides[i] *= 5;
  const WindowGeometry g = window_geometry<ConvAttrs>(sample.call);
  EXPECT_EQ(g.in_pixel(), 30);
  EXPECT_EQ(g.out_pixel(), 12);
}

}  // namespace
}  // namespace sinter::window::testing

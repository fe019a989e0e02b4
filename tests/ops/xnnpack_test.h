// One step on the XNNPACK backend: exactly the memory that was measured, one thread and three, against the
// reference kernel in float64.
#pragma once

#include <random>

#include "platforms/xnnpack/xnnpack_backend.h"
#include "sinter/thread_pool.h"
#include "tests/ops/half_test.h"
#include "tests/ops/op_test.h"

namespace sinter::test::xnn {

// By how much measure() may exceed what prepare() takes: rounding of one row of zeros.
constexpr size_t kSlack = 512;

inline Tensor widened(const Tensor& t) {
  if (t.dtype != DType::kFloat32) return unhalved<double>(t);
  const auto v = t.values<float>();
  return tensor<double>(t.dims, std::vector<double>(v.begin(), v.end()));
}

inline Tensor magnitudes(const Tensor& t) {
  auto v = t.values<double>();
  for (double& x : v) x = std::abs(x);
  return tensor<double>(t.dims, v);
}

template <class A>
constexpr bool kSums = A::kOp == Op::kConv || A::kOp == Op::kDepthwiseConv || A::kOp == Op::kConvTranspose ||
                       A::kOp == Op::kFullyConnected || A::kOp == Op::kMatMul;
constexpr double kSumBound = 1e-6;

struct Case {
  std::vector<Tensor> inputs;
  bool weights_constant = true;
  int outputs = -1;
  bool apart = false;  // operands 0 have their pixels apart
};

// One life of a step; false if the backend refuses it.
template <class A>
bool run_step(const A& attrs, const Case& c, ThreadPool* pool, Tensor* result) {
  XnnpackBackend backend;
  BumpArena nothing;
  EXPECT_TRUE(backend.open(nothing, nothing).ok());
  std::vector<TensorView> shapes;
  RunOptions options;
  options.outputs = c.outputs;
  const Status inferred = infer_op(attrs, c.inputs, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << sentence(inferred);
  if (!inferred.ok()) return false;
  std::vector<Operand> in;
  std::vector<TensorView> in_views, out_views;
  in.reserve(c.inputs.size());
  const Layout layout = pool == nullptr ? Layout::kDense : Layout::kFront;
  for (const Tensor& t : c.inputs) {
    in.emplace_back(t.dtype, t.dims, c.apart && in.empty() ? Layout::kPixels : layout);
    in.back().write(t);
    in_views.push_back(t.dtype == DType::kNone ? TensorView{} : in.back().view());
    in_views.back().constant = c.weights_constant && in.size() > 1;
  }
  Operand out(shapes[0].dtype, Shape(shapes[0].shape().begin(), shapes[0].shape().end()),
              c.apart ? Layout::kPixels : layout);
  out_views.push_back(out.view());
  for (size_t i = 1; i < shapes.size(); ++i) out_views.push_back(shapes[i]);
  OpCall call{A::kOp, &attrs, in_views, out_views};

  const int threads = pool != nullptr ? pool->thread_count() : 1;
  StepNeeds needs, again;
  const Status measured = backend.measure(call, threads, &needs);
  if (!measured.ok()) {
    EXPECT_EQ(measured.code, Code::kUnsupported) << sentence(measured);
    return false;
  }
  EXPECT_TRUE(backend.measure(call, threads, &again).ok());
  EXPECT_EQ(needs.prepared, again.prepared);
  EXPECT_EQ(needs.workspace, again.workspace);
  size_t planned = 0;  // the converter's figure, for any number of threads that it plans for
  EXPECT_TRUE(xnnpack::accept(call, 8, &planned).ok());
  EXPECT_LE(needs.workspace, planned);
  Operand prepared(DType::kUint8, {static_cast<int64_t>(needs.prepared)}, Layout::kTight);
  Operand workspace(DType::kUint8, {static_cast<int64_t>(needs.workspace)}, layout);
  BumpArena none, arena({prepared.view().data, needs.prepared});
  PreparedStep step;
  const Status ready =
      backend.prepare(call, {arena, none, {workspace.view().data, needs.workspace}, pool}, &step);
  EXPECT_TRUE(ready.ok()) << sentence(ready);
  if (!ready.ok()) return false;
  EXPECT_FALSE(arena.exhausted());
  EXPECT_LE(needs.prepared - arena.used(), kSlack);
  RunContext context{{workspace.view().data, needs.workspace}, pool};
  const bool alone = pool == nullptr || pool->thread_count() == 1;
  const Status ran = run_watched(A::kOp, alone, true, [&] { return step.run(step.state, call, context); });
  EXPECT_TRUE(ran.ok()) << sentence(ran);
  backend.release(step);
  EXPECT_TRUE(prepared.clean());
  EXPECT_TRUE(workspace.clean());
  EXPECT_TRUE(out.clean()) << "bytes beside the output changed";
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_TRUE(in[i].clean());
    if (c.inputs[i].dtype != DType::kNone) {
      EXPECT_EQ(in[i].read().bytes, c.inputs[i].bytes) << "input " << i << " changed";
    }
  }
  *result = out.read();
  return true;
}

template <class A>
bool check(const A& attrs, const Case& c, double bound) {
  std::vector<Tensor> wide, want;
  for (const Tensor& t : c.inputs) wide.push_back(widened(t));
  std::vector<TensorView> shapes;
  RunOptions options;
  options.outputs = c.outputs;
  const Status inferred = infer_op(attrs, wide, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << sentence(inferred);
  if (!inferred.ok()) return false;
  EXPECT_TRUE(run_once(attrs, wide, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
  Tensor one, three;
  static PthreadPool pool(3);
  if (!run_step(attrs, c, nullptr, &one)) return false;
  EXPECT_TRUE(run_step(attrs, c, &pool, &three));
  EXPECT_EQ(one.bytes, three.bytes) << "threads change the result";
  if (op_info(A::kOp)->in_strides == Strides::kPixel) {
    Case apart = c;
    apart.apart = true;
    Tensor other;
    EXPECT_TRUE(run_step(attrs, apart, nullptr, &other)) << "not accepted with strides";
    EXPECT_EQ(one.bytes, other.bytes) << "strides change the result";
    EXPECT_TRUE(run_step(attrs, apart, &pool, &other));
    EXPECT_EQ(one.bytes, other.bytes) << "strides and threads change the result";
  }
  const auto got = widened(one).values<double>();
  const auto exact = want[0].values<double>();
  std::vector<double> scale(exact.size(), 1e-30);
  if constexpr (kSums<A>) {
    A unclamped = attrs;
    if constexpr (requires { unclamped.act_min; })
      unclamped.act_min = -kInfinity, unclamped.act_max = kInfinity;
    for (Tensor& t : wide)
      if (t.dtype != DType::kNone) t = magnitudes(t);
    EXPECT_TRUE(run_once(unclamped, wide, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
    scale = want[0].values<double>();
  } else {
    double largest = 1e-30;
    for (const double v : exact) largest = std::max(largest, std::abs(v));
    scale.assign(exact.size(), largest);
  }
  // Below its smallest normal number float16 rounds to multiples of 2^-24.
  if (one.dtype == DType::kFloat16)
    for (double& s : scale) s = std::max(s, 0x1p-14);
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - exact[i]) / (scale[i] + 1e-30));
  EXPECT_LE(worst, bound) << op_name(A::kOp);
  return true;
}

struct Random {
  std::mt19937_64 engine;
  explicit Random(uint64_t seed) : engine(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  bool half() { return from(0, 1) != 0; }
  Tensor values(Shape dims) { return noise<float>(std::move(dims), -1, 1, engine()); }
};

// strides, dilations, pads and a kernel for one or two axes.
struct Geometry {
  IntList kernel, strides, dilations, pads;
  Shape in;
  Geometry(Random& r, int axes, int64_t most_kernel, int64_t most_dilation) {
    for (int i = 0; i < axes; ++i) {
      kernel.push(r.from(1, most_kernel));
      strides.push(r.from(1, 3));
      dilations.push(r.from(1, most_dilation));
      in.push_back((kernel[i] - 1) * dilations[i] + 1 + r.from(0, 12));
    }
    for (int i = 0; i < 2 * axes; ++i)
      pads.push(r.half() ? 0 : r.from(0, (kernel[i % axes] - 1) * dilations[i % axes]));
  }
  Shape with(int64_t batch, int64_t channels) const {
    Shape s = {batch};
    s.insert(s.end(), in.begin(), in.end());
    s.push_back(channels);
    return s;
  }
  Shape weights(int64_t first, int64_t last) const {
    Shape s;
    if (first > 0) s.push_back(first);
    s.insert(s.end(), kernel.begin(), kernel.end());
    s.push_back(last);
    return s;
  }
};

template <class A>
void clamp(Random& r, A& a) {
  if (r.half()) a.act_min = 0;
  if (a.act_min == 0 && r.half()) a.act_max = 0.75;
}
}  // namespace sinter::test::xnn

#include "tests/op_harness/xnnpack_test.h"

#include "platforms/xnnpack/platform.h"
#include "platforms/xnnpack/xnnpack_backend.h"
#include "sinter/thread_pool.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/packings.h"

namespace sinter::test::xnn {
namespace {

// By how much measure() may exceed what prepare() takes: rounding of one row of zeros.
constexpr size_t kSlack = 512;

Tensor magnitudes(const Tensor& t) {
  auto v = t.values<double>();
  for (double& x : v) x = std::abs(x);
  return tensor<double>(t.dims, v);
}

}  // namespace

Tensor widened(const Tensor& t) {
  if (t.dtype != DType::kFloat32) return unhalved<double>(t);
  const auto v = t.values<float>();
  return tensor<double>(t.dims, std::vector<double>(v.begin(), v.end()));
}

bool run_step(Op op, const void* attrs, const Case& c, ThreadPool* pool, Tensor* result) {
  XnnpackBackend backend;
  BumpArena nothing;
  EXPECT_TRUE(backend.open(nothing, nothing).ok());
  std::vector<TensorView> shapes;
  RunOptions options;
  options.outputs = c.outputs;
  const Status inferred = infer_op(op, attrs, c.inputs, &shapes, options);
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
  OpCall call{op, attrs, in_views, out_views};

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
  EXPECT_TRUE(xnnpack::accept({.architecture = kHostArchitecture}, call, 8, &planned).ok());
  EXPECT_LE(needs.workspace, planned);
  Operand prepared(DType::kUint8, {static_cast<int64_t>(needs.prepared)}, Layout::kTight);
  Operand workspace(DType::kUint8, {static_cast<int64_t>(needs.workspace)}, layout);
  EXPECT_EQ(needs.packing.bytes, again.packing.bytes);
  Operand packed(DType::kUint8, {static_cast<int64_t>(needs.packing.bytes)}, Layout::kTight);
  Operand scratch(DType::kUint8, {static_cast<int64_t>(needs.scratch)}, Layout::kTight);
  const std::span<std::byte> packed_bytes(packed.view().data, needs.packing.bytes);
  if (!packed_bytes.empty()) {
    std::fill(packed_bytes.begin(), packed_bytes.end(), std::byte{0xa5});
    EXPECT_TRUE(backend.pack(call, packed_bytes, pool).ok());
    expect_equal_packing(backend.name(), call, needs.packing, packed_bytes);
  }
  const std::vector<std::byte> before(packed_bytes.begin(), packed_bytes.end());
  BumpArena none, arena({prepared.view().data, needs.prepared});
  PreparedStep step;
  const Status ready = backend.prepare(call,
                                       {arena,
                                        none,
                                        {workspace.view().data, needs.workspace},
                                        pool,
                                        -1,
                                        packed_bytes,
                                        {scratch.view().data, needs.scratch}},
                                       &step);
  EXPECT_TRUE(ready.ok()) << sentence(ready);
  if (!ready.ok()) return false;
  EXPECT_FALSE(arena.exhausted());
  EXPECT_LE(needs.prepared - arena.used(), kSlack);
  RunContext context{{workspace.view().data, needs.workspace}, pool};
  const bool alone = pool == nullptr || pool->thread_count() == 1;
  const Status ran = run_watched(op, alone, true, [&] { return step.run(step.state, call, context); });
  EXPECT_TRUE(ran.ok()) << sentence(ran);
  backend.release(step);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), packed_bytes.begin()))
      << "packed weights are written to";
  EXPECT_TRUE(prepared.clean() && packed.clean() && scratch.clean());
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

bool check(Op op, const void* attrs, const void* unclamped, const Case& c, double bound) {
  std::vector<Tensor> wide, want;
  for (const Tensor& t : c.inputs) wide.push_back(widened(t));
  std::vector<TensorView> shapes;
  RunOptions options;
  options.outputs = c.outputs;
  const Status inferred = infer_op(op, attrs, wide, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << sentence(inferred);
  if (!inferred.ok()) return false;
  EXPECT_TRUE(run_once(op, attrs, wide, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
  Tensor one, three;
  static PthreadPool pool(3);
  if (!run_step(op, attrs, c, nullptr, &one)) return false;
  EXPECT_TRUE(run_step(op, attrs, c, &pool, &three));
  EXPECT_EQ(one.bytes, three.bytes) << "threads change the result";
  if (op_info(op)->in_strides == Strides::kPixel) {
    Case apart = c;
    apart.apart = true;
    Tensor other;
    EXPECT_TRUE(run_step(op, attrs, apart, nullptr, &other)) << "not accepted with strides";
    EXPECT_EQ(one.bytes, other.bytes) << "strides change the result";
    EXPECT_TRUE(run_step(op, attrs, apart, &pool, &other));
    EXPECT_EQ(one.bytes, other.bytes) << "strides and threads change the result";
  }
  const auto got = widened(one).values<double>();
  const auto exact = want[0].values<double>();
  std::vector<double> scale(exact.size(), 1e-30);
  if (unclamped != nullptr) {
    for (Tensor& t : wide)
      if (t.dtype != DType::kNone) t = magnitudes(t);
    EXPECT_TRUE(run_once(op, unclamped, wide, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
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
  EXPECT_LE(worst, bound) << op_name(op);
  return true;
}

}  // namespace sinter::test::xnn

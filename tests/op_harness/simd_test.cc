#include "tests/op_harness/simd_test.h"

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/simd_kernels.h"
#include "tests/op_harness/packings.h"

namespace sinter::test {

Tensor converted(const Tensor& t, DType to) {
  if (t.dtype == to || (t.dtype != DType::kFloat32 && t.dtype != DType::kFloat64)) return t;
  if (to == DType::kFloat64) {
    const auto v = t.values<float>();
    return tensor<double>(t.dims, std::vector<double>(v.begin(), v.end()));
  }
  const auto v = t.values<double>();
  return tensor<float>(t.dims, std::vector<float>(v.begin(), v.end()));
}

bool run_simd(Op op, const void* attrs, const std::vector<Tensor>& inputs, ThreadPool* pool,
              const RunOptions& options, std::vector<Tensor>* results) {
  std::vector<TensorView> shapes;
  const Status inferred = infer_op(op, attrs, inputs, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << sentence(inferred);
  if (!inferred.ok()) return false;
  const Kernel* kernel = simd_kernels()[static_cast<size_t>(op_index(op))];
  if (kernel == nullptr) return false;
  std::vector<Operand> in, out;
  std::vector<TensorView> in_views, out_views;
  const Layout layout = pool == nullptr ? Layout::kDense : Layout::kFront;
  for (const Tensor& t : inputs) {
    in.emplace_back(t.dtype, t.dims, options.apart && in.empty() ? Layout::kPixels : layout);
    in.back().write(t);
    in_views.push_back(t.dtype == DType::kNone ? TensorView{} : in.back().view());
    in_views.back().constant = true;
  }
  for (const TensorView& v : shapes) {
    const bool absent = v.rank == kUnwantedRank;
    out.emplace_back(absent ? DType::kNone : v.dtype,
                     absent ? Shape{} : Shape(v.shape().begin(), v.shape().end()),
                     options.apart && out.empty() ? Layout::kPixels : layout);
    out_views.push_back(absent ? TensorView{} : out.back().view());
  }
  OpCall call{op, attrs, in_views, out_views};
  if (!kernel->accept(call).ok()) return false;
  size_t bytes = 0;
  if (kernel->workspace != nullptr) {
    const Status s = kernel->workspace(call, pool != nullptr ? pool->thread_count() : 1, &bytes);
    EXPECT_TRUE(s.ok()) << sentence(s);
  }
  Operand workspace(DType::kUint8, {static_cast<int64_t>(bytes)}, layout);
  RunContext context{{workspace.view().data, bytes}, pool};
  const Status s = run_watched(op, pool == nullptr || pool->native() == nullptr, true,
                               [&] { return kernel->run(call, context); });
  EXPECT_TRUE(s.ok()) << sentence(s);
  EXPECT_TRUE(workspace.clean());
  results->clear();
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(out[i].clean()) << "bytes beside output " << i << " changed";
    results->push_back(out_views[i].present() ? out[i].read() : Tensor{});
  }
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_TRUE(in[i].clean());
    if (inputs[i].dtype != DType::kNone) {
      EXPECT_EQ(in[i].read().bytes, inputs[i].bytes) << "input " << i << " changed";
    }
  }
  return true;
}

std::vector<const char*> simd_tiers() {
  std::vector<const char*> tiers;
  for (const char* name : {"sse2", "sse4", "avx2", "avx512", "avx512_vbmi", "neon"})
    if (set_simd_cap(name)) tiers.push_back(name);
  set_simd_cap(nullptr);
  return tiers;
}

void check_simd(Op op, const void* attrs, const std::vector<Tensor>& inputs, double rtol, double atol,
                const RunOptions& options) {
#ifdef __arm__
  // Left to the reference kernels there; see simd_kernels.cc.
  if (simd_kernels()[op_index(op)] == nullptr) return;
#endif
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(converted(t, DType::kFloat64));
  std::vector<TensorView> shapes;
  std::vector<Tensor> want;
  ASSERT_TRUE(infer_op(op, attrs, wide, &shapes, options).ok());
  ASSERT_TRUE(run_once(op, attrs, wide, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
  for (const char* tier : simd_tiers()) {
    SCOPED_TRACE(tier);
    ASSERT_TRUE(set_simd_cap(tier));
    std::vector<Tensor> one, many;
    ReversedPool pool;
    EXPECT_TRUE(run_simd(op, attrs, inputs, nullptr, options, &one)) << op_name(op) << " was not accepted";
    EXPECT_TRUE(run_simd(op, attrs, inputs, &pool, options, &many));
    RunOptions apart = options;
    apart.apart = true;
    for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), static_cast<ThreadPool*>(&pool)}) {
      if (std::vector<Tensor> other; run_simd(op, attrs, inputs, threads, apart, &other)) {
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_EQ(one[i].bytes, other[i].bytes) << "strides change output " << i;
      }
    }
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].bytes, many[i].bytes) << "threads change output " << i;
      if (one[i].dtype != DType::kNone) expect_near(one[i], converted(want[i], one[i].dtype), rtol, atol);
    }
  }
  set_simd_cap(nullptr);
}

void check_simd_exact(Op op, const void* attrs, const std::vector<Tensor>& inputs) {
#ifdef __arm__
  // Some of what computes is left to the reference kernels there; see simd_kernels.cc.
  if (simd_kernels()[op_index(op)] == nullptr) return;
#endif
  std::vector<TensorView> shapes;
  std::vector<Tensor> want;
  ASSERT_TRUE(infer_op(op, attrs, inputs, &shapes, {}).ok());
  ASSERT_TRUE(run_once(op, attrs, inputs, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
  for (const char* tier : simd_tiers()) {
    SCOPED_TRACE(tier);
    ASSERT_TRUE(set_simd_cap(tier));
    std::vector<Tensor> one, many;
    ReversedPool pool;
    ASSERT_TRUE(run_simd(op, attrs, inputs, nullptr, {}, &one)) << op_name(op) << " was not accepted";
    ASSERT_TRUE(run_simd(op, attrs, inputs, &pool, {}, &many));
    EXPECT_EQ(one[0].bytes, many[0].bytes) << "threads change the result";
    RunOptions apart;
    apart.apart = true;
    if (std::vector<Tensor> other; run_simd(op, attrs, inputs, nullptr, apart, &other)) {
      EXPECT_EQ(one[0].bytes, other[0].bytes) << "strides change the result";
    }
    if (one[0].bytes == want[0].bytes) continue;
    const size_t width = byte_width(want[0].dtype);
    for (size_t i = 0; i < want[0].bytes.size(); ++i)
      if (one[0].bytes[i] != want[0].bytes[i]) {
        ADD_FAILURE() << "the first difference is at element " << i / width;
        break;
      }
  }
  set_simd_cap(nullptr);
}

void check_packed(Op op, const void* attrs, const std::vector<Tensor>& inputs, bool packs) {
  std::vector<Tensor> plain;
  ASSERT_TRUE(run_simd(op, attrs, inputs, nullptr, {}, &plain));
  std::vector<TensorView> shapes, in_views;
  ASSERT_TRUE(infer_op(op, attrs, inputs, &shapes).ok());
  std::vector<Operand> in;
  for (const Tensor& t : inputs) {
    in.emplace_back(t.dtype, t.dims, Layout::kDense);
    in.back().write(t);
    in_views.push_back(in.back().view());
    in_views.back().constant = in_views.size() > 1;
  }
  Operand out(shapes[0].dtype, plain[0].dims, Layout::kDense);
  std::vector<TensorView> out_views{out.view()};
  OpCall call{op, attrs, in_views, out_views};
  SimdBackend backend;
  for (const bool threaded : {false, true}) {
    ReversedPool pool;
    ThreadPool* threads = threaded ? &pool : nullptr;
    StepNeeds needs;
    ASSERT_TRUE(backend.measure(call, threaded ? 3 : 1, &needs).ok());
    EXPECT_EQ(needs.packing.bytes > 0, packs);
    EXPECT_EQ(needs.prepared, 0u);
    Operand packed(DType::kUint8, {static_cast<int64_t>(needs.packing.bytes)}, Layout::kTight);
    Operand workspace(DType::kUint8, {static_cast<int64_t>(needs.workspace)}, Layout::kDense);
    BumpArena none;
    RunContext context{{workspace.view().data, needs.workspace}, threads};
    const std::span<std::byte> bytes(packed.view().data, needs.packing.bytes);
    if (packs) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
      ASSERT_TRUE(backend.pack(call, bytes, threads).ok());
      expect_equal_packing(backend.name(), call, needs.packing, bytes);
      EXPECT_EQ(backend.pack(call, bytes.first(bytes.size() - 1), threads).code, Code::kInternal);
    }
    const std::vector<std::byte> before(bytes.begin(), bytes.end());
    PreparedStep step;
    ASSERT_TRUE(backend.prepare(call, {none, none, context.workspace, threads, -1, bytes}, &step).ok());
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE(run_watched(op, true, true, [&] { return step.run(step.state, call, context); }).ok());
      EXPECT_EQ(out.read().bytes, plain[0].bytes);
    }
    EXPECT_TRUE(std::equal(before.begin(), before.end(), bytes.begin())) << "a run writes to packed weights";
    EXPECT_TRUE(packed.clean() && workspace.clean() && out.clean());
    backend.release(step);
  }
}

}  // namespace sinter::test

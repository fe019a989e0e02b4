// The device side: runs take nothing from the heap, and equal packed weights are shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "platforms/onednn/onednn_backend.h"
#include "tests/memory/watch.h"
#include "tests/op_harness/backends.h"

namespace sinter::test {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

struct Memory {
  alignas(kBufferAlignment) std::byte bytes[kBlock];
};

TensorView typed(DType type, Memory& memory, std::initializer_list<int64_t> dims, bool constant = false) {
  TensorView v;
  v.dtype = type, v.constant = constant, v.data = memory.bytes;
  v.set_shape(std::span<const int64_t>(dims.begin(), dims.size()));
  return v;
}

TensorView floats(Memory& memory, std::initializer_list<int64_t> dims, bool constant = false) {
  TensorView v = typed(DType::kFloat32, memory, dims, constant);
  for (int64_t i = 0; i < v.size(); ++i) v.as<float>()[i] = static_cast<float>(i % 7) - 3;
  return v;
}

ConvAttrs conv_attrs(int64_t top, int64_t bottom) {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {top, 1, bottom, 1};
  a.act_min = 0;
  return a;
}

class Onednn : public testing::Test {
 protected:
  void SetUp() override {
    const Status opened = backend.open(none);
    if (opened.code == Code::kUnsupported) GTEST_SKIP() << opened.message;
    ASSERT_TRUE(opened.ok());
  }
  OnednnBackend backend;
  BumpArena none;
};

// Prepares the call and runs it ten times; then does the same with a byte less.
void run_watched(OnednnBackend& backend, const OpCall& call, ThreadPool* threads = nullptr) {
  static Memory prepared, workspace, packed;
  BumpArena none;
  StepNeeds needs;
  ASSERT_TRUE(backend.measure(call, 1, &needs).ok());
  ASSERT_LE(std::max({needs.prepared, needs.workspace, needs.packing.bytes}), kBlock);
  const std::span<std::byte> bytes(packed.bytes, needs.packing.bytes);
  ASSERT_TRUE(backend.pack(call, bytes, nullptr).ok());
  BumpArena arena({prepared.bytes, needs.prepared});
  const Preparation with{arena, none, {workspace.bytes, needs.workspace}, threads, -1, bytes};
  PreparedStep step;
  ASSERT_TRUE(backend.prepare(call, with, &step).ok());
  EXPECT_EQ(arena.used(), needs.prepared);
  RunContext context{{workspace.bytes, needs.workspace}, nullptr};
  bool ok = true;
  const Seen seen = watched(true, [&] {
    for (int i = 0; i < 10; ++i) ok = ok && step.run(step.state, {}, context).ok();
  });
  EXPECT_TRUE(ok);
  EXPECT_TRUE(seen.nothing()) << seen.text();
  backend.release(step);

  BumpArena small({prepared.bytes, needs.prepared - 1});
  const Preparation tight{small, none, {workspace.bytes, needs.workspace}, nullptr, -1, bytes};
  EXPECT_EQ(backend.prepare(call, tight, &step).code, Code::kInternal);
  EXPECT_EQ(backend.pack(call, bytes.first(bytes.size() - 64), nullptr).code, Code::kInternal);
}

TEST_F(Onednn, RunsWithoutHeapLocksOrSystemCalls) {
  static Memory x, w, y;
  TensorView in[2] = {floats(x, {1, 12, 12, 16}), floats(w, {24, 3, 3, 16}, true)};
  TensorView out[1] = {floats(y, {1, 12, 12, 24})};
  const ConvAttrs attrs = conv_attrs(1, 1);
  run_watched(backend, {Op::kConv, &attrs, in, out});
}

// The library is asked for all that it may be: zero points, a bias, multipliers for each channel, and a
// clamp.
TEST_F(Onednn, RunsBytesWithoutHeapLocksOrSystemCalls) {
  static Memory x, w, bias, multipliers, y;
  TensorView in[4] = {typed(DType::kInt8, x, {1, 12, 12, 16}), typed(DType::kInt8, w, {24, 3, 3, 16}, true),
                      typed(DType::kInt32, bias, {24}, true), floats(multipliers, {24}, true)};
  TensorView out[1] = {typed(DType::kInt8, y, {1, 12, 12, 24})};
  in[2].as<int32_t>()[5] = 77;
  const QConvAttrs attrs{.strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .x_zero = 3,
                         .y_zero = -5,
                         .q_min = -100,
                         .q_max = 100};
  const OpCall call{Op::kQConv, &attrs, in, out};
  StepNeeds needs;
  const Status measured = backend.measure(call, 1, &needs);
  if (measured.code == Code::kUnsupported) GTEST_SKIP() << measured.message;
  run_watched(backend, call);
}

TEST_F(Onednn, RunsBFloat16WithoutHeapLocksOrSystemCalls) {
  static Memory x, w, bias, y;
  constexpr DType kType = DType::kBFloat16;
  const FullyConnectedAttrs attrs;
  TensorView in[3] = {typed(kType, x, {90, 64}), typed(kType, w, {48, 64}, true),
                      typed(kType, bias, {48}, true)};
  TensorView out[1] = {typed(kType, y, {90, 48})};
  const OpCall call{Op::kFullyConnected, &attrs, in, out};
  StepNeeds needs;
  const Status measured = backend.measure(call, 1, &needs);
  if (measured.code == Code::kUnsupported) GTEST_SKIP() << measured.message;
  run_watched(backend, call);
}

// A step reads neither its call nor the context.
TEST_F(Onednn, RunsOnTheThreadsForWhichItWasPrepared) {
  class CountingPool final : public ThreadPool {
   public:
    void parallel_for(Task task, void* context, int64_t count, int64_t) override {
      ++calls;
      for (int64_t i = 0; i < count; ++i) task(context, i, i + 1);
    }
    int thread_count() const override { return 2; }
    int calls = 0;
  };
  static Memory x, w, y;
  TensorView in[2] = {floats(x, {1, 12, 12, 16}), floats(w, {24, 3, 3, 16}, true)};
  TensorView out[1] = {floats(y, {1, 12, 12, 24})};
  const ConvAttrs attrs = conv_attrs(1, 1);
  CountingPool pool;
  run_watched(backend, {Op::kConv, &attrs, in, out}, &pool);
  EXPECT_EQ(pool.calls, 10);
}

TEST_F(Onednn, PacksEqualWeightsEqually) {
  static Memory x, w, y;
  const auto packing = [&](int64_t height, int64_t top, int64_t bottom, int64_t channels) {
    TensorView in[2] = {floats(x, {1, height, 12, 8}), floats(w, {channels, 3, 3, 8}, true)};
    TensorView out[1] = {floats(y, {1, height + top + bottom - 2, 12, channels})};
    const ConvAttrs attrs = conv_attrs(top, bottom);
    StepNeeds needs;
    EXPECT_TRUE(backend.measure({Op::kConv, &attrs, in, out}, 1, &needs).ok());
    return needs.packing;
  };
  const auto equal = [](const Packing& a, const Packing& b) {
    return a.bytes == b.bytes && a.inputs == b.inputs &&
           std::equal(std::begin(a.parameters), std::end(a.parameters), std::begin(b.parameters));
  };
  const Packing whole = packing(12, 1, 1, 16);
  EXPECT_GT(whole.bytes, 0u);
  EXPECT_TRUE(equal(whole, packing(12, 1, 1, 16)));
  EXPECT_FALSE(equal(whole, packing(12, 1, 1, 17)));
}

}  // namespace
}  // namespace sinter::test

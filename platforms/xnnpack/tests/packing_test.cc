// XNNPACK allocates while it creates operators and nowhere else.
#ifdef SINTER_WITH_XNNPACK

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "platforms/xnnpack/xnnpack_backend.h"
#include "sinter/thread_pool.h"
#include "tests/memory/watch.h"

namespace sinter {
namespace {

struct alignas(kBufferAlignment) Block {
  std::byte bytes[kBufferAlignment];
};

struct Memory {
  std::vector<Block> blocks;
  explicit Memory(size_t bytes) : blocks(bytes / sizeof(Block) + 4) {}
  std::byte* data() { return blocks.data()->bytes; }
};

TensorView dense(Memory& memory, std::initializer_list<int64_t> dims, bool constant) {
  TensorView v;
  v.dtype = DType::kFloat32;
  v.set_shape(std::span<const int64_t>(dims.begin(), dims.size()));
  v.data = memory.data();
  v.constant = constant;
  for (int64_t i = 0; i < v.size(); ++i) v.as<float>()[i] = static_cast<float>(i % 7) - 3;
  return v;
}

TEST(Xnnpack, PreparesAndRunsWithoutHeap) {
  Memory x(1 << 16), f(1 << 16), y(1 << 16);
  TensorView in[2] = {dense(x, {1, 12, 12, 16}, false), dense(f, {24, 3, 3, 16}, true)};
  TensorView out[1] = {dense(y, {1, 12, 12, 24}, false)};
  ConvAttrs attrs;
  attrs.strides = {1, 1}, attrs.dilations = {1, 1}, attrs.pads = {1, 1, 1, 1};
  const OpCall call{Op::kConv, &attrs, in, out};
  PthreadPool pool(2);
  XnnpackBackend backend;
  BumpArena none;
  ASSERT_TRUE(backend.open(none).ok());
  StepNeeds needs;
  ASSERT_TRUE(
      backend.measure(call, 2, &needs).ok());  // the library detects the processor's kernels here, once
  Memory prepared(needs.prepared), workspace(needs.workspace), packed(needs.packing.bytes);
  const std::span<std::byte> bytes(packed.data(), needs.packing.bytes);

  const int64_t before = test::allocation_count();
  StepNeeds again;
  ASSERT_TRUE(backend.measure(call, 2, &again).ok());
  ASSERT_GT(needs.packing.bytes, 0u);
  ASSERT_TRUE(backend.pack(call, bytes, &pool).ok());
  BumpArena arena({prepared.data(), needs.prepared});
  PreparedStep step;
  ASSERT_TRUE(
      backend.prepare(call, {arena, none, {workspace.data(), needs.workspace}, &pool, -1, bytes}, &step)
          .ok());
  EXPECT_EQ(arena.used(), needs.prepared);
  RunContext context{{workspace.data(), needs.workspace}, &pool};
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(step.run(step.state, call, context).ok());
  backend.release(step);
  EXPECT_EQ(test::allocation_count(), before);

  // A byte less is noticed.
  BumpArena small({prepared.data(), needs.prepared - 1});
  EXPECT_EQ(
      backend.prepare(call, {small, none, {workspace.data(), needs.workspace}, &pool, -1, bytes}, &step).code,
      Code::kInternal);
  EXPECT_EQ(backend.pack(call, bytes.first(bytes.size() - 64), &pool).code, Code::kInternal);
}

// Stripes of a convolution differ in height and padding, and share its weights. Other numbers are packed
// differently.
TEST(Xnnpack, PacksWhatStripesShareEqually) {
  Memory x(1 << 16), f(1 << 16), y(1 << 16);
  XnnpackBackend backend;
  BumpArena none;
  ASSERT_TRUE(backend.open(none).ok());
  const auto packing = [&](int64_t height, int64_t top, int64_t bottom, int64_t kernel, int64_t channels) {
    const int64_t out = height + top + bottom - kernel + 1;
    TensorView in[2] = {dense(x, {1, height, 12, 8}, false), dense(f, {channels, kernel, kernel, 8}, true)};
    TensorView result[1] = {dense(y, {1, out, 12, channels}, false)};
    ConvAttrs attrs;
    attrs.strides = {1, 1}, attrs.dilations = {1, 1}, attrs.pads = {top, kernel / 2, bottom, kernel / 2};
    StepNeeds needs;
    EXPECT_TRUE(backend.measure({Op::kConv, &attrs, in, result}, 1, &needs).ok());
    return needs.packing;
  };
  const auto equal = [](const Packing& a, const Packing& b) {
    return a.bytes == b.bytes && a.inputs == b.inputs &&
           std::equal(std::begin(a.parameters), std::end(a.parameters), std::begin(b.parameters));
  };
  const Packing whole = packing(12, 1, 1, 3, 16);
  EXPECT_GT(whole.bytes, 0u);
  EXPECT_TRUE(equal(whole, packing(5, 1, 0, 3, 16)));
  EXPECT_TRUE(equal(whole, packing(6, 0, 0, 3, 16)));
  EXPECT_FALSE(equal(whole, packing(12, 1, 1, 3, 17)));
  EXPECT_FALSE(equal(packing(12, 0, 0, 1, 16), packing(12, 1, 1, 1, 16)));
}

}  // namespace
}  // namespace sinter

#endif

// Sessions of one model on several threads at a time, each with its own caller: created, run and destroyed
// without synchronisation between them. Meant for ThreadSanitizer (the preset tsan); elsewhere the results
// still show mixed-up memory.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/format/sample_models.h"
#include "tests/memory/backends.h"

namespace sinter::test {
namespace {

struct Outcome {
  bool right = true;
  std::vector<Bytes> outputs;
};

// Creates, runs and destroys sessions; all must give the same.
Outcome live(const Model& model, const SessionOptions& options, const std::vector<Bytes>& inputs,
             std::atomic<int>& waiting) {
  Outcome o;
  --waiting;
  while (waiting > 0) std::this_thread::yield();  // all begin together
  for (int life = 0; life < 5; ++life) {
    auto needs = Session::requirements(model, options);
    if (!needs.ok()) return {false, {}};
    const testing::AlignedBytes memory(needs->bytes);
    auto created = Session::create(model, memory.span(), options);
    if (!created.ok()) return {false, {}};
    Session session = std::move(*created);
    for (int run = 0; run < 20; ++run) {
      session.reset();
      for (uint32_t i = 0; i < session.input_count(); ++i)
        std::copy(inputs[i].begin(), inputs[i].end(), session.input(i).data);
      o.right &= session.run().ok();
      std::vector<Bytes> outputs;
      for (uint32_t i = 0; i < session.output_count(); ++i)
        outputs.emplace_back(session.output(i).data,
                             session.output(i).data + session.output(i).dense_bytes());
      if (o.outputs.empty()) o.outputs = outputs;
      o.right &= outputs == o.outputs;
    }
  }
  return o;
}

// Convolutions and products with constant weights, which backends pack.
testing::ModelBuilder weighted_model() {
  testing::ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 8, 8, 4});
  std::vector<float> filter(8 * 3 * 3 * 4), matrix(512 * 10);
  for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i % 13) / 13 - 0.4f;
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 17) / 17 - 0.5f;
  const int f = b.constant<float>(DType::kFloat32, {8, 3, 3, 4}, filter);
  const int m = b.constant<float>(DType::kFloat32, {10, 512}, matrix);
  const int c = b.value(DType::kFloat32, {1, 8, 8, 8}), v = b.value(DType::kFloat32, {1, 512});
  const int p = b.value(DType::kFloat32, {1, 10}), y = b.value(DType::kFloat32, {1, 10});
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {1, 1, 1, 1};
  b.step(conv, {x, f}, {c}).workspace = 1 << 16;
  ViewAttrs view;
  view.dims = {1, 512};
  b.step(view, {c}, {v});
  b.step(FullyConnectedAttrs{}, {v, m}, {p}).workspace = 1 << 16;
  b.step(SigmoidAttrs{}, {p}, {y});
  b.output("y", y);
  return b;
}

void works_on_threads(testing::ModelBuilder b) {
  const testing::AlignedBytes file = b.build();
  const OpenedFile opened(file.span());
  ASSERT_TRUE(opened.status().ok());
  const std::vector<Bytes> inputs = harmless_inputs(opened.model());
  Backends backends;
  for (const Use& use : backends.uses(opened.model(), inputs)) {
    if (!use.alone) continue;  // a pool serves one session at a time
    SCOPED_TRACE(use.name);
    constexpr int kThreads = 3;
    std::atomic<int> waiting = kThreads;
    std::vector<Outcome> outcomes(kThreads);
    std::vector<std::thread> threads;
    for (Outcome& o : outcomes)
      threads.emplace_back([&] { o = live(opened.model(), use.options, inputs, waiting); });
    for (std::thread& t : threads) t.join();
    for (const Outcome& o : outcomes) {
      EXPECT_TRUE(o.right);
      EXPECT_EQ(o.outputs, outcomes[0].outputs);
      EXPECT_FALSE(o.outputs.empty());
    }
  }
}

TEST(Threads, ShareAModel) { works_on_threads(testing::plain_model()); }
TEST(Threads, ShareWeights) { works_on_threads(weighted_model()); }
TEST(Threads, ShareAModelWithLoops) { works_on_threads(testing::control_model()); }

TEST(Threads, OpenTheSameFile) {
  const testing::AlignedBytes file = weighted_model().build();
  std::vector<std::thread> threads;
  std::atomic<int> opened = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { opened += OpenedFile(file.span()).status().ok() ? 1 : 0; });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(opened, 3);
}

}  // namespace
}  // namespace sinter::test

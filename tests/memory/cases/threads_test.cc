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

// `shared`: the sessions read one PackedWeights.
void works_on_threads(testing::ModelBuilder b, bool shared = false) {
  const testing::AlignedBytes file = b.build();
  const OpenedFile opened(file.span());
  ASSERT_TRUE(opened.status().ok());
  const std::vector<Bytes> inputs = harmless_inputs(opened.model());
  Backends backends;
  for (const Use& use : backends.uses(opened.model(), inputs)) {
    if (!use.alone) continue;  // a pool serves one session at a time
    SCOPED_TRACE(use.name);
    SessionOptions options = use.options;
    const testing::AlignedBytes block(PackedWeights::requirements(opened.model(), options).value().bytes);
    const auto packed = PackedWeights::create(opened.model(), block.span(), options);
    ASSERT_TRUE(packed.ok());
    if (shared) options.packed_weights = &packed.value();
    constexpr int kThreads = 3;
    std::atomic<int> waiting = kThreads;
    std::vector<Outcome> outcomes(kThreads);
    std::vector<std::thread> threads;
    for (Outcome& o : outcomes)
      threads.emplace_back([&] { o = live(opened.model(), options, inputs, waiting); });
    for (std::thread& t : threads) t.join();
    for (const Outcome& o : outcomes) {
      EXPECT_TRUE(o.right);
      EXPECT_EQ(o.outputs, outcomes[0].outputs);
      EXPECT_FALSE(o.outputs.empty());
    }
  }
}

TEST(Threads, ShareAModel) { works_on_threads(testing::plain_model()); }
TEST(Threads, ShareWeights) { works_on_threads(testing::weighted_model()); }
TEST(Threads, SharePackedWeights) { works_on_threads(testing::weighted_model(), true); }
TEST(Threads, ShareAModelWithLoops) { works_on_threads(testing::control_model()); }

TEST(Threads, OpenTheSameFile) {
  const testing::AlignedBytes file = testing::weighted_model().build();
  std::vector<std::thread> threads;
  std::atomic<int> opened = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { opened += OpenedFile(file.span()).status().ok() ? 1 : 0; });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(opened, 3);
}

}  // namespace
}  // namespace sinter::test

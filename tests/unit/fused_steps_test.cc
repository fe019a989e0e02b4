// Steps that a backend computes together: what sessions ask for, and that the simd backend's results stay the
// same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "converter/quantize/ranges/observe.h"
#include "platforms/simd/simd_backend.h"
#include "sinter/backends.h"
#include "tests/unit/evaluate_graph.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

// Computes Abs and Neg, and nothing else: writes the number of steps that it has prepared so far. Two steps
// in a row become one.
class FusingBackend final : public Backend {
 public:
  struct Step {
    FusingBackend* backend = nullptr;
    float number = 0;
    TensorView y;
    Step* next = nullptr;
    void write() const {
      for (int64_t i = 0; i < y.size(); ++i) y.as<float>()[i] = number;
    }
  };
  int prepared = 0, runs = 0, fused_runs = 0;

  const char* name() const override { return "fusing"; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int, StepNeeds* needs) override {
    SINTER_RETURN_UNLESS(call.op == Op::kAbs || call.op == Op::kNeg, unsupported("another operation"));
    *needs = {.prepared = sizeof(Step), .call = CallUse::kKept};
    return ok_status();
  }
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override {
    auto* state = with.prepared.allocate_array<Step>(1);
    SINTER_RETURN_UNLESS(state != nullptr, error(Code::kInternal, "memory"));
    *state = {this, static_cast<float>(++prepared), call.out(0)};
    step->state = state;
    step->run = [](void* self, const OpCall&, RunContext& context) {
      const auto& s = *static_cast<Step*>(self);
      ++s.backend->runs;
      s.write();
      if (context.fused) ++s.backend->fused_runs;
      for (const Step* next = s.next; context.fused && next != nullptr; next = next->next) next->write();
      return ok_status();
    };
    return ok_status();
  }
  bool fuse(const PreparedStep& first, const PreparedStep& next) override {
    auto* last = static_cast<Step*>(first.state);
    for (; last->next != nullptr; last = last->next) {
    }
    last->next = static_cast<Step*>(next.state);
    return true;
  }
  void release(PreparedStep&) override {}
};

// in -> Abs -> Neg -> Abs -> Sqrt -> Neg -> Abs, each but Sqrt by the backend; all are outputs.
ModelBuilder six_steps() {
  ModelBuilder b;
  int v = b.input("x", DType::kFloat32, {3});
  const auto add = [&](const auto& attrs, const char* name) {
    const int y = b.value(DType::kFloat32, {3});
    b.step(attrs, {v}, {y});
    b.output(name, v = y);
  };
  add(AbsAttrs{}, "0"), add(NegAttrs{}, "1"), add(AbsAttrs{}, "2");
  add(SqrtAttrs{}, "3"), add(NegAttrs{}, "4"), add(AbsAttrs{}, "5");
  for (StepSpec& s : b.program().steps) s.candidates.push_back(0);
  b.backends = {"fusing"};
  return b;
}

TEST(FusedSteps, RunTogetherUnlessTheyAreObserved) {
  ModelBuilder b = six_steps();
  FusingBackend backend;
  Backend* const backends[] = {&backend};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  const auto check = [&] {
    r.set<float>("x", {1, 2, 3});
    ASSERT_TRUE(r.session.run().ok());
    for (const auto& [name, number] : std::vector<std::pair<const char*, float>>{
             {"0", 1.0f}, {"1", 2.0f}, {"2", 3.0f}, {"3", std::sqrt(3.0f)}, {"4", 4.0f}, {"5", 5.0f}})
      EXPECT_EQ(r.get<float>(name)[2], number) << name;
  };
  check();
  EXPECT_EQ(backend.runs, 2);  // Sqrt is between them
  EXPECT_EQ(backend.fused_runs, 2);
  int seen = 0;
  const StepObserver observer{
      &seen, nullptr, [](void* count, const StepInfo&, const OpCall&) { ++*static_cast<int*>(count); }};
  r.session.set_observer(&observer);
  check();
  EXPECT_EQ(seen, 6);
  EXPECT_EQ(backend.runs, 2 + 5);
  EXPECT_EQ(backend.fused_runs, 2);
  r.session.set_observer(nullptr);
  check();
  EXPECT_EQ(backend.runs, 2 + 5 + 2);
  EXPECT_EQ(backend.fused_runs, 4);
}

}  // namespace
}  // namespace sinter::testing

namespace sinter::convert {
namespace {

using testing::Sketch;

// A row of element-wise steps over `dims`; operands are of the same dims, one for each channel, or one
// number.
Sketch random_row(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  const auto any = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  Sketch s;
  std::vector<ValueId> values{s.input(dims), s.input(dims)};
  const int steps = 2 + any(7);
  for (int i = 0; i < steps; ++i) {
    const ValueId last = values.back();
    const int kind = any(4);
    const ValueId other = kind == 0   ? s.scalar(0.5 + any(4))
                          : kind == 1 ? s.constant({dims.back()}, 0.5, 2)
                                      : values[static_cast<size_t>(any(static_cast<int>(values.size())))];
    ClampAttrs clamp;
    clamp.min = -1, clamp.max = 1.5;
    AddAttrs bounded;
    bounded.act_min = -2, bounded.act_max = 2;
    switch (any(9)) {
      case 0:
        values.push_back(s.emit(AddAttrs{}, {last, other}));
        break;
      case 1:
        values.push_back(s.emit(bounded, {last, other}));
        break;
      case 2:
        values.push_back(s.emit(MulAttrs{}, {last, other}));
        break;
      case 3:
        values.push_back(s.emit(SubAttrs{}, {kind == 0 ? other : last, kind == 0 ? last : other}));
        break;
      case 4:
        values.push_back(s.emit(PReluAttrs{}, {last, other}));
        break;
      case 5:
        values.push_back(s.emit(SigmoidAttrs{}, {last}));
        break;
      case 6:
        values.push_back(s.emit(HardSwishAttrs{}, {last}));
        break;
      case 7:
        values.push_back(s.emit(MaxAttrs{}, {last, other}));
        break;
      default:
        values.push_back(s.emit(clamp, {last}));
        break;
    }
  }
  s.output(values.back(), "last");
  if (any(3) == 0) s.output(values[values.size() - 2], "before");
  return s;
}

// The simd backend; counts the steps that it computes with others.
class CountingSimd final : public Backend {
 public:
  int fused = 0;

  const char* name() const override { return simd_.name(); }
  Status open(BumpArena& prepared) override { return simd_.open(prepared); }
  void close() override { simd_.close(); }
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override {
    return simd_.measure(call, threads, needs);
  }
  Status pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) override {
    return simd_.pack(call, packed, threads);
  }
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override {
    return simd_.prepare(call, with, step);
  }
  bool fuse(const PreparedStep& first, const PreparedStep& next) override {
    const bool fuses = simd_.fuse(first, next);
    fused += fuses;
    return fuses;
  }
  void release(PreparedStep& step) override { simd_.release(step); }

 private:
  SimdBackend simd_;
};

TEST(FusedSteps, HaveTheResultsOfOneAfterTheOther) {
  const Dims shapes[] = {{1, 9, 11, 16}, {1, 13, 37, 5}, {2, 8, 8, 96}, {1, 3, 5, 700}, {7}, {1, 1, 1, 1}};
  CountingSimd simd;
  int rows_with_fused = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Sketch s = random_row(shapes[seed % std::size(shapes)], seed);
    RunnerOptions options;
    options.backends = {default_backends().begin(), default_backends().end()};
    std::replace_if(
        options.backends.begin(), options.backends.end(),
        [&](const Backend* b) { return std::strcmp(b->name(), simd.name()) == 0; }, &simd);
    if (seed % 2 == 0) options.backend = "simd";
    const int before = simd.fused;
    GraphRunner runner(s.graph, options);
    const auto outputs = [&] {
      std::vector<std::vector<float>> all;
      for (size_t i = 0; i < s.graph.outputs.size(); ++i) {
        const TensorView y = runner.output(i);
        all.emplace_back(y.as<float>(), y.as<float>() + y.size());
      }
      return all;
    };
    rows_with_fused += simd.fused > before;
    runner.run(s.feeds);
    const auto together = outputs();
    runner.watch(observable_values(s.graph));
    runner.run(s.feeds, [](ValueId, const TensorView&) {});
    const auto apart = outputs();
    const auto exact = testing::evaluate_graph(s.graph, s.feeds);
    for (size_t i = 0; i < apart.size(); ++i) {
      ASSERT_EQ(std::memcmp(together[i].data(), apart[i].data(), apart[i].size() * sizeof(float)), 0)
          << "seed " << seed;
      for (size_t k = 0; k < apart[i].size(); ++k)
        ASSERT_NEAR(apart[i][k], exact[i][k], 1e-4 * (1 + std::fabs(exact[i][k]))) << "seed " << seed;
    }
  }
  EXPECT_GE(rows_with_fused, 50);
}

}  // namespace
}  // namespace sinter::convert

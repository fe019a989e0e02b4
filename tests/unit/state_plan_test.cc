// States in a plan: which are updated in place, and that whatever the plan does, runs give what they give
// where the caller carries the state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "converter/emit/emitter.h"
#include "converter/import/caches/states.h"
#include "converter/import/lower.h"
#include "converter/ir/builder.h"
#include "converter/ir/deep_copy.h"
#include "converter/plan/planner.h"
#include "converter/quantize/samples/carried_states.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/running.h"

namespace sinter::convert {
namespace {

using ::sinter::testing::AlignedBytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

struct StateGraph {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Builder builder{*graph};
  ValueId input(const std::string& name, Dims dims, DType dtype = DType::kFloat32) {
    graph->inputs.push_back(graph->add_value(name, dtype, std::move(dims)));
    return graph->inputs.back();
  }
  ValueId emit(OpAttrs attrs, std::vector<ValueId> operands) {
    std::vector<ValueId> out;
    if (!builder.emit(std::move(attrs), std::move(operands), 1, &out).ok())
      throw std::logic_error("a test builds an operation that is not possible");
    return out[0];
  }
  void output(ValueId id, const std::string& name) {
    graph->outputs.push_back(id);
    separate_outputs(*graph);
    graph->value(graph->outputs.back()).name = name;
  }
  // `update` becomes `kept`, an input.
  void state(ValueId kept, ValueId update, ConstantPtr initial = nullptr) {
    const std::string name = graph->value(kept).name;
    output(update, name + "_out");
    const auto at = std::find(graph->inputs.begin(), graph->inputs.end(), kept);
    graph->states.push_back({static_cast<size_t>(at - graph->inputs.begin()), graph->outputs.size() - 1, name,
                             name + "_out", std::move(initial)});
  }
  PlannedProgram plan() { return plan_model(deep_copy(*graph), {}).programs[0]; }
};

SliceAttrs window(IntList starts, IntList sizes) {
  SliceAttrs a{starts, {}, sizes};
  for (int i = 0; i < starts.size(); ++i) a.steps.push(1);
  return a;
}

// The plan as a file, with a session of the reference kernels.
struct FileSession {
  AlignedBytes file, model_memory, memory;
  Model model;
  Session session;
  Status status;

  explicit FileSession(const PlannedModel& plan, std::span<const Binding> bindings = {}) {
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "state_plan.sinter";
    emit_model({&plan, 1}, path, {});
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::filesystem::remove(path);
    file = AlignedBytes(text.size());
    std::memcpy(file.data(), text.data(), text.size());
    const OpenOptions open{.kernels = reference_kernels()};
    const auto bytes = Model::open_bytes(file.span(), open);
    if (status = bytes.status(); !status.ok()) return;
    model_memory = AlignedBytes(bytes.value());
    const auto opened = Model::open(file.span(), model_memory.span(), open);
    if (status = opened.status(); !status.ok()) return;
    model = opened.value();
    const SessionOptions options{.bindings = bindings};
    const auto needs = Session::requirements(model, options);
    if (status = needs.status(); !status.ok()) return;
    memory = AlignedBytes(needs->bytes);
    auto created = Session::create(model, memory.span(), options);
    status = created.status();
    if (created.ok()) session = std::move(created.value());
  }
  ~FileSession() { session.destroy(); }
  std::string why() const {
    char text[256];
    model.format(status, text);
    return text;
  }
};

ConstantPtr random_tensor(std::mt19937& random, const Dims& dims) {
  std::vector<float> items(static_cast<size_t>(element_count(dims)));
  for (float& x : items) x = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.F;
  return Constant::of<float>(DType::kFloat32, dims, items);
}

TEST(StatePlan, KeepsStatesInARegionOfTheirOwn) {
  StateGraph g;
  const ValueId x = g.input("x", {1, 32}), h = g.input("h", {1, 32});
  g.output(g.emit(ExpAttrs{}, {x}), "y");
  g.state(h, g.emit(AddAttrs{}, {x, h}));
  const PlannedProgram p = g.plan();
  ASSERT_EQ(p.regions.size(), 2u);
  EXPECT_FALSE(p.regions[0].state);
  EXPECT_TRUE(p.regions[1].state);
  EXPECT_EQ(p.regions[1].bytes, 128u + kReadPadding);
  EXPECT_TRUE(p.in_place(p.graph->states[0]));
  EXPECT_EQ(p.copied_state_bytes, 0u);
}

TEST(StatePlan, CopiesWhatAStepCannotOverwrite) {
  StateGraph g;
  const ValueId h = g.input("h", {4, 4});
  g.state(h, g.emit(MatMulAttrs{}, {h, h}));
  const PlannedProgram p = g.plan();
  EXPECT_FALSE(p.in_place(p.graph->states[0]));
  EXPECT_EQ(p.copied_state_bytes, 64u);
}

TEST(StatePlan, ReadsTheOldContentBeforeItMakesTheNew) {
  StateGraph g;
  const ValueId x = g.input("x", {1, 32}), h = g.input("h", {1, 32});
  const ValueId fresh = g.emit(AddAttrs{}, {x, h});
  g.output(g.emit(ExpAttrs{}, {h}), "y");  // behind it in the model's order
  g.state(h, fresh);
  EXPECT_EQ(g.plan().copied_state_bytes, 0u);
  StateGraph other;  // which needs both
  const ValueId a = other.input("a", {1, 32}), b = other.input("b", {1, 32});
  const ValueId both = other.emit(AddAttrs{}, {a, b});
  other.output(other.emit(MulAttrs{}, {both, b}), "y");
  other.state(b, both);
  EXPECT_EQ(other.plan().copied_state_bytes, 128u);
}

TEST(StatePlan, WritesIntoCaches) {
  for (const int kind : {0, 1, 2}) {
    StateGraph g;
    const ValueId cache = g.input("cache", {2, 8, 4}), rows = g.input("rows", {2, 1, 4});
    ValueId at = kAbsent, now = kAbsent;
    if (kind == 0) {
      at = g.input("at", {2}, DType::kInt64);
      now = g.emit(CacheUpdateAttrs{1, 1}, {cache, rows, at});
    } else if (kind == 1) {
      at = g.input("at", {2, 1, 2}, DType::kInt64);
      now = g.emit(ScatterNdAttrs{}, {cache, at, rows});
    } else {
      at = g.input("at", {2, 1, 4}, DType::kInt64);
      now = g.emit(ScatterElementsAttrs{1}, {cache, at, rows});
    }
    g.output(g.emit(ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), {1}, 0}, {now}), "y");
    g.state(cache, now);
    EXPECT_EQ(g.plan().copied_state_bytes, 0u) << kind;
  }
}

// Of batch 2, 1 or 3 tokens, 4 query heads of 2 heads, keys of 3 and values of 5 elements.
TEST(StatePlan, UpdatesTheStateOfALinearAttention) {
  for (const int64_t tokens : {1, 3}) {
    StateGraph g;
    const ValueId q = g.input("q", {2, tokens, 4, 3}), k = g.input("k", {2, tokens, 2, 3}),
                  v = g.input("v", {2, tokens, 2, 5}), decay = g.input("decay", {2, tokens, 2, 1}),
                  beta = g.input("beta", {2, tokens, 2}), kept = g.input("state", {2, 2, 3, 5});
    std::vector<ValueId> out;
    const LinearAttentionAttrs attrs{0.5, static_cast<int64_t>(LinearAttentionRule::kGatedDelta), 0};
    ASSERT_TRUE(g.builder.emit(attrs, {q, k, v, kept, decay, beta}, 2, &out).ok());
    g.output(out[0], "y");
    g.state(kept, out[1]);
    const PlannedModel plan = plan_model(deep_copy(*g.graph), {});
    EXPECT_EQ(plan.programs[0].copied_state_bytes, 0u);
    FileSession opened(plan);
    ASSERT_TRUE(opened.status.ok()) << opened.why();
    StatefulRunner reference(*g.graph, {});
    std::mt19937 random(5);
    for (int run = 0; run < 4; ++run) {
      Sample sample;
      for (uint32_t i = 0; i < 5; ++i) {
        sample.push_back(random_tensor(random, g.graph->value(g.graph->inputs[i]).dims));
        std::memcpy(opened.session.input(i).data, sample.back()->load().bytes.data(),
                    sample.back()->byte_size());
      }
      ASSERT_TRUE(opened.session.run().ok());
      reference.run(sample);
      const TensorView y = opened.session.output(0), s = opened.session.state(0);
      EXPECT_EQ(std::memcmp(y.data, reference.output(0).data, static_cast<size_t>(y.dense_bytes())), 0);
      EXPECT_EQ(std::memcmp(s.data, reference.output(1).data, static_cast<size_t>(s.dense_bytes())), 0);
    }
  }
}

TEST(StatePlan, CopiesTheStateOfALinearAttentionThatOthersRead) {
  StateGraph g;
  const Dims dims{1, 2, 2, 2};
  const ValueId q = g.input("q", dims), kept = g.input("state", dims);
  std::vector<ValueId> out;
  // Its keys are the state, too.
  ASSERT_TRUE(g.builder.emit(LinearAttentionAttrs{}, {q, kept, q, kept}, 2, &out).ok());
  g.output(out[0], "y");
  g.state(kept, out[1]);
  EXPECT_EQ(g.plan().copied_state_bytes, 32u);
}

TEST(StatePlan, ShiftsALineByOneMove) {
  StateGraph g;
  const ValueId line = g.input("line", {1, 16, 4}), x = g.input("x", {1, 2, 4});
  const ValueId now = g.emit(ConcatAttrs{1}, {g.emit(window({0, 2, 0}, {1, 14, 4}), {line}), x});
  g.output(g.emit(NegAttrs{}, {now}), "y");
  g.state(line, now);
  const PlannedProgram p = g.plan();
  EXPECT_EQ(p.copied_state_bytes, 0u);
  bool moved = false;
  for (size_t n = 0; n < p.steps.size(); ++n) {
    EXPECT_TRUE(p.graph->nodes[n].op() != Op::kSlice || p.steps[n].elided);
    if (p.graph->nodes[n].op() == Op::kConcat) moved = p.steps[n].in_order && !p.steps[n].elided;
  }
  EXPECT_TRUE(moved);
}

TEST(StatePlan, BindableValuesShareMemoryWithNone) {
  StateGraph g;
  const ValueId x = g.input("x", {1, 32});
  const ValueId wide = g.emit(ExpAttrs{}, {x});
  const ValueId y = g.emit(ViewAttrs{{32}}, {wide});
  const ValueId part = g.emit(window({0, 8}, {1, 8}), {wide});
  g.output(y, "y"), g.output(part, "part");
  g.graph->bindable_inputs = {0}, g.graph->bindable_outputs = {0, 1};
  const PlannedProgram p = g.plan();
  for (const ValueId id : {p.graph->inputs[0], p.graph->outputs[0], p.graph->outputs[1]})
    EXPECT_EQ(p.values[static_cast<size_t>(id)].alias_of, kAbsent) << id;
  AlignedBytes buffers[3] = {AlignedBytes(256), AlignedBytes(256), AlignedBytes(256)};
  const Binding bindings[] = {
      {"x", buffers[0].span()}, {"y", buffers[1].span()}, {"part", buffers[2].span()}};
  FileSession bound(plan_model(deep_copy(*g.graph), {}), bindings);
  ASSERT_TRUE(bound.status.ok()) << bound.why();
  for (int i = 0; i < 32; ++i) reinterpret_cast<float*>(buffers[0].data())[i] = 0.1F * static_cast<float>(i);
  ASSERT_TRUE(bound.session.run().ok());
  const auto* result = reinterpret_cast<const float*>(buffers[1].data());
  EXPECT_FLOAT_EQ(result[20], std::exp(2.F));
  EXPECT_EQ(std::memcmp(buffers[2].data(), result + 8, 32), 0);
}

TEST(StateNames, ArePairedByTheirWords) {
  // Outputs are computed from all inputs, or from the first one.
  const auto proposed = [](std::vector<std::string> inputs, std::vector<std::string> outputs,
                           bool from_all = true) {
    StateGraph g;
    for (const std::string& name : inputs) g.input(name, {1, 8});
    ValueId from = g.graph->inputs[0];
    for (size_t i = 1; from_all && i < inputs.size(); ++i)
      from = g.emit(AddAttrs{}, {from, g.graph->inputs[i]});
    for (const std::string& name : outputs) g.output(g.emit(ExpAttrs{}, {from}), name);
    return propose_states(*g.graph);
  };
  EXPECT_THAT(proposed({"x", "h_in", "c_in"}, {"y", "h_out", "c_out"}),
              ElementsAre(Pair("c_out", "c_in"), Pair("h_out", "h_in")));
  EXPECT_THAT(
      proposed({"past_key_values.0.key", "past_key_values.1.key"}, {"present.0.key", "present.1.key"}),
      ElementsAre(Pair("present.0.key", "past_key_values.0.key"),
                  Pair("present.1.key", "past_key_values.1.key")));
  EXPECT_THAT(proposed({"input", "state"}, {"output", "stateN"}), ElementsAre(Pair("stateN", "state")));
  EXPECT_THAT(proposed({"x", "h0", "c0"}, {"y", "hn", "cn"}),
              ElementsAre(Pair("cn", "c0"), Pair("hn", "h0")));
  EXPECT_THAT(proposed({"x", "cache"}, {"y", "cache_out"}), ElementsAre(Pair("cache_out", "cache")));
  EXPECT_THAT(proposed({"x", "state"}, {"y", "new_state"}), ElementsAre(Pair("new_state", "state")));
  EXPECT_THAT(proposed({"image"}, {"mask"}), IsEmpty());
  EXPECT_THAT(proposed({"input"}, {"output"}), IsEmpty());
  EXPECT_THAT(proposed({"h_in", "h_old"}, {"h_out"}), IsEmpty()) << "two inputs are meant";
  EXPECT_THAT(proposed({"x", "state"}, {"y", "new_state"}, false), IsEmpty()) << "it does not follow";
}

// ---- against runs whose caller carries the state

class RandomStates {
 public:
  explicit RandomStates(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 2; ++i) values_.push_back(g_.input("x" + std::to_string(i), kDims));
    const int states = 1 + pick(3);
    std::vector<ValueId> kept;
    for (int i = 0; i < states; ++i) kept.push_back(g_.input("s" + std::to_string(i), kDims));
    values_.insert(values_.end(), kept.begin(), kept.end());
    for (int i = 0; i < 4 + pick(14); ++i) values_.push_back(operation());
    for (int i = 0; i < 1 + pick(2); ++i) g_.output(any(), "y" + std::to_string(i));
    for (const ValueId s : kept) {
      const ValueId update = pick(3) == 0 ? any() : bounded(any());
      g_.state(s, update, pick(2) == 0 ? random_tensor(random_, kDims) : nullptr);
    }
    remove_dead_nodes(*g_.graph);
  }

  void check(const PlanOptions& options) {
    const PlannedModel plan = plan_model(deep_copy(*g_.graph), options);
    FileSession opened(plan);
    ASSERT_TRUE(opened.status.ok()) << opened.why();
    Session& session = opened.session;
    StatefulRunner reference(*g_.graph, {});
    for (int run = 0; run < 8; ++run) {
      if (run == 5) session.reset(), reference.reset();
      Sample sample;
      for (uint32_t i = 0; i < 2; ++i) {
        sample.push_back(random_tensor(random_, kDims));
        std::memcpy(session.input(i).data, sample.back()->load().bytes.data(), sample.back()->byte_size());
      }
      ASSERT_TRUE(session.run().ok());
      reference.run(sample);
      uint32_t public_output = 0;
      for (size_t i = 0; i < g_.graph->outputs.size(); ++i) {
        const TensorView expected = reference.output(i);
        const GraphState* state = g_.graph->state_written(g_.graph->outputs[i]);
        const auto index =
            state == nullptr ? size_t{0} : static_cast<size_t>(state - g_.graph->states.data());
        const TensorView y =
            state == nullptr ? session.output(public_output++) : session.state(static_cast<uint32_t>(index));
        ASSERT_EQ(std::memcmp(y.data, expected.data, static_cast<size_t>(expected.dense_bytes())), 0)
            << "run " << run << ", output " << i << "\n"
            << dump(*g_.graph);
      }
    }
    copied_ += plan.programs[0].copied_state_bytes > 0 ? 1 : 0;
  }
  int copied() const { return copied_; }

 private:
  const Dims kDims{4, 6};

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  ValueId any() { return values_[static_cast<size_t>(pick(static_cast<int>(values_.size())))]; }
  ValueId bounded(ValueId v) { return g_.emit(ClampAttrs{-2, 2}, {v}); }
  ValueId number(std::vector<int64_t> items, Dims dims) {
    return g_.graph->add_constant(Constant::of<int64_t>(DType::kInt64, std::move(dims), items));
  }

  ValueId operation() {
    const ValueId a = any(), b = any();
    switch (pick(12)) {
      case 0:
        return bounded(g_.emit(AddAttrs{}, {a, b}));
      case 1:
        return g_.emit(MulAttrs{}, {a, g_.graph->add_constant(random_tensor(random_, {6}))});
      case 2:
        return g_.emit(NegAttrs{}, {a});
      case 3:  // shifted along the outer axis
        return g_.emit(ConcatAttrs{0},
                       {g_.emit(window({1, 0}, {3, 6}), {a}), g_.emit(window({pick(4), 0}, {1, 6}), {b})});
      case 4:  // along the inner one
        return g_.emit(ConcatAttrs{1},
                       {g_.emit(window({0, 2}, {4, 4}), {a}), g_.emit(window({0, 1}, {4, 2}), {b})});
      case 5:
        return g_.emit(ScatterNdAttrs{},
                       {a, number({pick(4)}, {1, 1}), g_.emit(window({pick(4), 0}, {1, 6}), {b})});
      case 6:
        return g_.emit(
            ScatterElementsAttrs{0},
            {a, number({0, 1, 2, 3, 0, 1, 3, 2, 1, 0, 1, 2, 0, 0, 0, 0, 0, 0, 2, 3, 2, 3, 2, 3}, {4, 6}), b});
      case 7:
        return g_.emit(ViewAttrs{{4, 6}}, {g_.emit(NegAttrs{}, {g_.emit(ViewAttrs{{24}}, {a})})});
      case 8:
        return g_.emit(CopyAttrs{}, {a});
      case 9:
        return bounded(g_.emit(MatMulAttrs{}, {a, g_.graph->add_constant(random_tensor(random_, {6, 6}))}));
      case 10:
        return g_.emit(SoftmaxAttrs{1}, {a});
      default:
        return g_.emit(ConcatAttrs{0},
                       {g_.emit(window({2, 0}, {2, 6}), {a}), g_.emit(window({0, 0}, {2, 6}), {a})});
    }
  }

  std::mt19937 random_;
  StateGraph g_;
  std::vector<ValueId> values_;
  int copied_ = 0;
};

TEST(StatePlan, GivesTheBitsOfACallerWhoCarriesTheState) {
  int copied = 0;
  constexpr int kGraphs = 400;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    RandomStates states(seed);
    PlanOptions options;
    options.strides = seed % 2 == 0;
    options.overlap = seed % 3 == 0;
    options.thorough = seed % 4 < 2;
    options.effort = 0.05;
    states.check(options);
    if (HasFatalFailure()) return;
    copied += states.copied();
  }
  // Both happen.
  EXPECT_GT(copied, kGraphs / 10);
  EXPECT_LT(copied, kGraphs * 9 / 10);
}

}  // namespace
}  // namespace sinter::convert

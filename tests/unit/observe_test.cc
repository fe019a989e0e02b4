// What observers see of a graph that runs, against the same graph evaluated node by node.
#include "converter/quantize/ranges/observe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "converter/convert.h"
#include "converter/diagnostics/errors.h"
#include "converter/quantize/ranges/calibrators.h"
#include "converter/quantize/samples/sample_list.h"
#include "sinter/backends.h"
#include "tests/common/load_graph.h"
#include "tests/common/source_dir.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::Sketch;

std::vector<Backend*> backends() { return {default_backends().begin(), default_backends().end()}; }

// Steps that cost nothing (View, Slice, Concat of whole parts), steps in place and two outputs.
struct NetOfViews {
  Sketch s;
  std::vector<ValueId> all;
  NetOfViews() {
    const ValueId x = s.input({1, 4, 6}), y = s.input({1, 2, 6});
    const ValueId a = keep(s.emit(AddAttrs{}, {x, s.constant({6})}));
    ClampAttrs relu;
    relu.min = 0;
    const ValueId b = keep(s.emit(relu, {a}));
    const ValueId c = keep(s.emit(SigmoidAttrs{}, {y}));
    ConcatAttrs join;
    join.axis = 1;
    const ValueId d = keep(s.emit(join, {b, c}));
    ViewAttrs flat;
    flat.dims = {6, 6};
    const ValueId e = keep(s.emit(flat, {d}));
    SliceAttrs cut;
    cut.starts = {1, 0}, cut.steps = {1, 1}, cut.sizes = {2, 6};
    const ValueId f = keep(s.emit(cut, {e}));
    const ValueId g = keep(s.emit(FullyConnectedAttrs{}, {f, s.constant({5, 6}), s.constant({5})}));
    const ValueId h = keep(s.emit(TanhAttrs{}, {e}));
    all.push_back(x), all.push_back(y);
    s.output(g, "g");
    s.output(h, "h");
  }
  ValueId keep(ValueId id) {
    all.push_back(id);
    return id;
  }
};

// Every value of the graph in float64.
std::map<ValueId, std::vector<double>> exact(const Graph& graph, const std::vector<ConstantPtr>& feeds) {
  std::map<ValueId, std::vector<double>> values;
  for (const ValueId id : observable_values(graph)) {
    Graph one = graph;
    one.outputs = {id};
    if (!graph.is_input(id)) values[id] = testing::evaluate_graph(one, feeds)[0];
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = feeds[i]->as_doubles();
  return values;
}

TEST(Observe, EveryValueIsSeenOnceAsItIs) {
  for (const bool fast : {false, true}) {
    const NetOfViews net;
    const auto expected = exact(net.s.graph, net.s.feeds);
    RunnerOptions options;
    if (fast) options.backends = backends();
    GraphRunner runner(net.s.graph, options);
    runner.watch(net.all);
    for (int run = 0; run < 2; ++run) {
      std::map<ValueId, int> times;
      runner.run(net.s.feeds, [&](ValueId id, const TensorView& view) {
        ++times[id];
        ASSERT_EQ(Dims(view.dims, view.dims + view.rank), net.s.graph.value(id).dims);
        const auto& want = expected.at(id);
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_NEAR(view.as<float>()[i], want[i], 1e-5) << "value " << id << " at " << i;
      });
      EXPECT_EQ(times.size(), net.all.size());
      for (const auto& [id, n] : times) EXPECT_EQ(n, 1) << id;
    }
    EXPECT_NEAR(runner.output(0).as<float>()[3], expected.at(net.s.graph.outputs[0])[3], 1e-5);
  }
}

TEST(Observe, OnlyWhatIsAskedForIsShown) {
  const NetOfViews net;
  GraphRunner runner(net.s.graph, {});
  runner.watch(std::vector<ValueId>{net.all[1]});
  std::vector<ValueId> seen;
  const auto look = [&](ValueId id, const TensorView&) { seen.push_back(id); };
  runner.run(net.s.feeds, look);
  EXPECT_EQ(seen, (std::vector<ValueId>{net.all[1]}));
  runner.watch({});
  runner.run(net.s.feeds, look);
  EXPECT_EQ(seen.size(), 1u);
}

TEST(Observe, ASummaryHoldsTheExtremesOfAllSamples) {
  NetOfViews net;
  std::vector<Sample> samples;
  std::map<ValueId, std::pair<double, double>> extremes;
  for (int n = 0; n < 5; ++n) {
    const std::vector<ConstantPtr> feeds{net.s.fill({1, 4, 6}, -n, n + 1), net.s.fill({1, 2, 6}, -1, 2)};
    samples.push_back(feeds);
    for (const auto& [id, values] : exact(net.s.graph, feeds)) {
      auto& [low, high] = extremes.emplace(id, std::pair(1e9, -1e9)).first->second;
      low = std::min(low, *std::min_element(values.begin(), values.end()));
      high = std::max(high, *std::max_element(values.begin(), values.end()));
    }
  }
  SampleList source(samples);
  ObserveOptions options;
  options.runner.backends = backends();
  std::vector<std::pair<int64_t, int64_t>> told;
  options.progress = [&](int64_t done, int64_t total) { told.emplace_back(done, total); };
  const Observations seen = observe(net.s.graph, source, observable_values(net.s.graph), options);
  EXPECT_EQ(seen.samples, 5);
  EXPECT_EQ(told.back(), (std::pair<int64_t, int64_t>{5, 5}));
  EXPECT_EQ(seen.values.size(), extremes.size());
  for (const auto& [id, range] : extremes) {
    const TensorSummary* s = seen.find(id);
    ASSERT_NE(s, nullptr) << id;
    EXPECT_NEAR(s->all.min, range.first, 1e-5);
    EXPECT_NEAR(s->all.max, range.second, 1e-5);
    EXPECT_EQ(s->elements, static_cast<uint64_t>(5 * element_count(net.s.graph.value(id).dims)));
    EXPECT_EQ(s->channels.size(), static_cast<size_t>(net.s.graph.value(id).dims.back()));
  }
}

TEST(Observe, NoSamplesAreRefused) {
  const NetOfViews net;
  SampleList none({});
  EXPECT_THROW(observe(net.s.graph, none, net.all, {}), DataError);
}

// Real networks: what is observed of their outputs is what they give.
TEST(Observe, KeywordSpottingRanges) {
  const std::filesystem::path folder = sinter::testing::shared_dir();
  const auto model = folder / "models/mlperf-kws/kws-dscnn-fp32.onnx", data = folder / "data/kws01/kws01.npz";
  if (!std::filesystem::exists(model) || !std::filesystem::exists(data))
    GTEST_SKIP() << folder << " has no kws-dscnn and kws01";
  Diagnostics diagnostics;
  std::optional<Graph> graph = load_graph(model, diagnostics);
  ASSERT_TRUE(graph);
  run_passes(*graph, {});
  compact_values(*graph);
  // The file holds int8 features; the model takes them scaled.
  const auto features = open_samples(data.string(), {{"x", DType::kInt8, {1, 49, 10, 1}, {}}}, {64});
  std::vector<Sample> samples;
  for (Sample raw; features->next(&raw);) {
    std::vector<float> sample;
    for (const double v : raw[0]->as_doubles()) sample.push_back(static_cast<float>((v - 83) * 0.58470291));
    samples.push_back({Constant::of<float>(DType::kFloat32, {1, 49, 10, 1}, sample)});
  }
  ASSERT_EQ(samples.size(), 64u);
  SampleList source(samples);
  ObserveOptions options;
  options.runner.backends = backends();
  const Observations seen = observe(*graph, source, observable_values(*graph), options);
  const TensorSummary* out = seen.find(graph->outputs[0]);
  ASSERT_NE(out, nullptr);
  EXPECT_GE(out->all.min, 0);  // a softmax
  EXPECT_LE(out->all.max, 1.00001f);
  EXPECT_NEAR(out->all.sum, 64, 1e-3);
  for (const auto& [id, s] : seen.values) {
    const ChosenRange best = choose_range(s, {});
    EXPECT_GT(best.error.sqnr_db(), 25) << graph->value(id).name;
    EXPECT_EQ(s.not_finite, 0u);
  }
}

}  // namespace
}  // namespace sinter::convert

// Ranges that end where the functions behind a value are flat.
#include "converter/quantize/ranges/useful_ranges.h"

#include "tests/unit/evaluate_graph.h"

namespace sinter::convert::testing {
namespace {

// As if a value had been seen from -20 to 40.
TensorSummary wide() {
  std::vector<float> items;
  for (int i = 0; i <= 6000; ++i) items.push_back(static_cast<float>(i) / 100 - 20);
  TensorStatistics statistics;
  statistics.add(std::span<const float>(items));
  return statistics.summary();
}

// The extremes of `id` after the cut.
std::pair<double, double> cut(const Graph& graph, ValueId id, Cut how) {
  Observations seen;
  seen.values[id] = wide();
  cut_to_useful(graph, how, &seen);
  const TensorSummary& s = seen.values[id];
  EXPECT_EQ(s.histogram.total, wide().histogram.total);
  EXPECT_GE(s.histogram.bins.front().low, static_cast<double>(s.all.min));
  EXPECT_LE(s.histogram.bins.back().high, static_cast<double>(s.all.max));
  return {s.all.min, s.all.max};
}

TEST(UsefulRanges, EndWhereFunctionsAreFlat) {
  Sketch s;
  const ValueId x = s.input({2, 3}), y = s.input({2, 3}), z = s.input({2, 3});
  s.output(s.emit(MulAttrs{}, {x, s.emit(SigmoidAttrs{}, {x})}), "silu");
  s.output(s.emit(SigmoidAttrs{}, {s.emit(ViewAttrs{IntList{6}}, {y})}), "sigmoid");
  s.output(s.emit(HardSwishAttrs{}, {z}), "hard swish");
  const auto [silu_low, silu_high] = cut(s.graph, x, Cut::kFlat);
  EXPECT_NEAR(silu_low, -8, 1.5);
  EXPECT_EQ(silu_high, 40);
  const auto [hard_low, hard_high] = cut(s.graph, z, Cut::kFlat);
  EXPECT_NEAR(hard_low, -3, 0.5);
  EXPECT_EQ(hard_high, 40);
  // What is moved is observed itself.
  Observations seen;
  const ValueId moved = s.graph.nodes[2].inputs[0];
  ASSERT_EQ(s.graph.nodes[2].op(), Op::kView);
  seen.values[moved] = wide(), seen.values[s.graph.nodes[2].outputs[0]] = wide();
  cut_to_useful(s.graph, Cut::kFlat, &seen);
  EXPECT_NEAR(static_cast<double>(seen.values[moved].all.min), -9, 1);
  EXPECT_NEAR(static_cast<double>(seen.values[moved].all.max), 9, 1);
}

TEST(UsefulRanges, NoiseIsMinimalWhereLittleIsLost) {
  Sketch s;
  const ValueId x = s.input({2, 3});
  s.output(s.emit(SigmoidAttrs{}, {x}));
  const auto [low, high] = cut(s.graph, x, Cut::kNoise);
  EXPECT_GT(low, -9);
  EXPECT_LT(low, -4);
  EXPECT_LT(high, 9);
  EXPECT_GT(high, 4);
}

TEST(UsefulRanges, StayWhereOthersRead) {
  Sketch s;
  const ValueId x = s.input({2, 3}), y = s.input({2, 3}), z = s.input({2, 3});
  s.output(s.emit(SigmoidAttrs{}, {x}), "sigmoid");
  s.output(s.emit(AddAttrs{}, {x, y}), "sum");
  s.output(s.emit(SigmoidAttrs{}, {z}), "public");
  s.output(z, "z");
  EXPECT_EQ(cut(s.graph, x, Cut::kFlat), std::pair(-20.0, 40.0));
  EXPECT_EQ(cut(s.graph, z, Cut::kFlat), std::pair(-20.0, 40.0));
  EXPECT_EQ(cut(s.graph, y, Cut::kNoise), std::pair(-20.0, 40.0));
}

}  // namespace
}  // namespace sinter::convert::testing

// The time that a quantization is expected to take: by a clock that the test sets.
#include "converter/quantize/work_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "converter/convert.h"
#include "converter/quantize/quantize.h"
#include "converter/quantize/samples/sample_list.h"
#include "sinter/backends.h"
#include "tests/common/load_graph.h"
#include "tests/common/source_dir.h"

namespace sinter::convert {
namespace {

struct WorkByClock {
  double now = 100;
  int reports = 0;
  WorkLeft work{[this] { return now; }, [this](Work) { ++reports; }};
  void take(double seconds, Work kind, double units = 1) {
    now += seconds;
    work.did(kind, units);
  }
  double left() const { return work.left()->seconds; }
};

TEST(WorkLeft, IsKnownFromTheFirstSampleOn) {
  WorkByClock w;
  w.now += 3;
  EXPECT_FALSE(w.work.left());
  w.work.expect(phase::kCalibrating, Work::kObserving, 5);
  EXPECT_FALSE(w.work.left());
  w.work.did(Work::kObserving, 0);  // nothing that is counted took these seconds
  EXPECT_FALSE(w.work.left());
  w.take(2, Work::kObserving);
  EXPECT_DOUBLE_EQ(w.left(), 8);
  EXPECT_EQ(w.reports, 2);
}

TEST(WorkLeft, GuessesWhatWasNotYetMeasured) {
  WorkByClock w;
  w.work.guess(Work::kTrial, Work::kObserving, 3, 0.5);
  w.work.guess(Work::kRounding, Work::kObserving, 0, 10);
  w.work.expect(phase::kRewriting, Work::kRounding, 1);
  w.work.expect(phase::kLeavingFloat, Work::kTrial, 2);
  w.take(2, Work::kObserving);
  EXPECT_DOUBLE_EQ(w.left(), 10 + 2 * 6.5);
  w.work.begin(phase::kRewriting);
  w.take(20, Work::kTrial);  // the first one rounds the weights
  EXPECT_DOUBLE_EQ(w.left(), 2 * 6.5);
  w.work.begin(phase::kLeavingFloat);
  w.take(4, Work::kTrial);
  EXPECT_DOUBLE_EQ(w.left(), 4);
  w.work.add_new_weights();
  w.take(30, Work::kTrial);
  EXPECT_DOUBLE_EQ(w.left(), 4);
  w.take(4, Work::kTrial);
  EXPECT_DOUBLE_EQ(w.left(), 0);
}

TEST(WorkLeft, FallsWhileAUnitIsDone) {
  WorkByClock w;
  w.work.guess(Work::kTrial, Work::kObserving, 0, 6);
  w.work.expect(phase::kCalibrating, Work::kObserving, 3);
  w.work.expect(phase::kLeavingFloat, Work::kTrial, 1);
  w.take(5, Work::kObserving);
  EXPECT_DOUBLE_EQ(w.left(), 16);
  w.now += 4;
  EXPECT_DOUBLE_EQ(w.left(), 12);
  w.now += 100;  // not below what later phases take
  EXPECT_DOUBLE_EQ(w.left(), 6);
  EXPECT_DOUBLE_EQ(w.work.left()->of_phase, 0);
}

TEST(WorkLeft, ForgetsWhatAPhaseDidNotDo) {
  WorkByClock w;
  w.work.guess(Work::kTrial, Work::kObserving, 0, 6);
  w.work.expect(phase::kRewriting, Work::kTrial, 5);
  w.work.expect(phase::kBiases, Work::kTrial, 1);
  w.take(1, Work::kObserving);
  EXPECT_DOUBLE_EQ(w.left(), 36);
  w.work.begin(phase::kBiases);
  EXPECT_DOUBLE_EQ(w.left(), 6);
  w.work.begin(phase::kCalibrating);  // again: nothing changes
  w.work.expect(phase::kRewriting, Work::kTrial, 5);
  EXPECT_DOUBLE_EQ(w.left(), 6);
}

// Samples on which every run takes a second of `now`.
std::vector<Sample> slow_samples(const Graph& graph, size_t count, double* now) {
  std::vector<Sample> samples(count);
  std::minstd_rand random(5);
  for (Sample& sample : samples)
    for (const ValueId id : graph.inputs) {
      const Dims& dims = graph.value(id).dims;
      Bytes bytes(static_cast<size_t>(element_count(dims)) * sizeof(float));
      for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
        const float x = static_cast<float>(random() % 2001) / 1000 - 1;
        std::memcpy(bytes.data() + i, &x, sizeof(x));
      }
      sample.push_back(Constant::lazy(DType::kFloat32, dims, [now, bytes] { return *now += 1, bytes; }));
    }
  return samples;
}

// The smallest and the largest quotient of the time that was expected and the time that it took, from the
// phase of ranges on, when all usual kinds are measured, while a tenth of all and more was to come. Before,
// trials are guessed for networks whose integers are computed faster than floats are observed; here each run
// takes the same time.
std::pair<double, double> quotients(const char* net) {
  Diagnostics diagnostics;
  std::optional<Graph> graph = load_graph(
      sinter::testing::source_dir() / "tests/quantize/nets" / (std::string(net) + ".onnx"), diagnostics);
  EXPECT_TRUE(graph);
  run_passes(*graph, {});
  compact_values(*graph);
  graph->ledger = std::make_shared<TypeLedger>();
  double now = 1000;
  const std::vector<Sample> samples = slow_samples(*graph, 100, &now);
  SampleList list(samples);
  QuantizeOptions options;
  options.runner.backends = {default_backends().begin(), default_backends().end()};
  options.clock = [&] { return now; };
  bool measured = false;
  std::vector<std::pair<double, double>> reports;  // when, and what was left
  options.progress = [&](const Phase& at, int64_t, int64_t, const std::optional<TimeLeft>& left) {
    measured |= &at == &phase::kRanges;
    if (left && measured) reports.emplace_back(now, left->seconds);
  };
  const double begin = now;
  quantize_graph(*graph, &list, options);
  double largest = 0, smallest = HUGE_VAL;
  for (const auto& [when, left] : reports) {
    if (now - when < 0.1 * (now - begin)) continue;
    largest = std::max(largest, left / (now - when)), smallest = std::min(smallest, left / (now - when));
  }
  EXPECT_GT(reports.size(), 50u);
  return {smallest, largest};
}

TEST(WorkLeft, IsWhatAQuantizationTakes) {
  for (const char* net : {"depthwise", "boxes", "unet"}) {
    SCOPED_TRACE(net);
    const auto [smallest, largest] = quotients(net);
    EXPECT_GT(smallest, 1 / 1.6);
    EXPECT_LT(largest, 1.6);
  }
}

}  // namespace
}  // namespace sinter::convert

// Mappings whose pages are released hold what they held, and what runs with them is the same to the byte.
#include "converter/ir/resident_limit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "converter/convert.h"
#include "converter/emit/emitter.h"
#include "converter/ir/large_bytes.h"
#include "converter/plan/planner.h"
#include "converter/quantize/samples/sample_list.h"
#include "sinter/backends.h"
#include "tests/common/load_graph.h"
#include "tests/common/source_dir.h"
#include "tests/unit/random_bodies.h"

namespace sinter::convert {
namespace {

constexpr size_t kBytes = size_t{64} << 20;

FileMemory filled() {
  FileMemory memory(kBytes);
  for (size_t i = 0; i < memory.span().size(); i += 64) memory.span()[i] = static_cast<std::byte>(i >> 6);
  return memory;
}

TEST(FileMemory, KeepsWhatItHolds) {
  const FileMemory memory = filled();
  ASSERT_EQ(memory.span().size(), kBytes);
  const size_t before = resident_file_bytes();
  release_all_file_pages();
  EXPECT_LT(resident_file_bytes() + kBytes / 2, before);
  size_t wrong = 0;
  for (size_t i = 0; i < kBytes; i += 64) wrong += memory.span()[i] != static_cast<std::byte>(i >> 6);
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(FileMemory().span().empty());
}

TEST(ResidentLimit, ReleasesWhatIsBeyondIt) {
  const FileMemory memory = filled();
  const size_t before = resident_file_bytes();
  const ResidentLimit limit(kBytes / 4);
  for (int i = 0; i < 2000 && resident_file_bytes() + kBytes / 2 > before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LT(resident_file_bytes() + kBytes / 2, before);
}

std::vector<Sample> made_up(const Graph& graph, size_t count) {
  std::vector<Sample> samples(count);
  uint32_t state = 7;
  for (Sample& sample : samples)
    for (const ValueId id : graph.inputs) {
      if (graph.value(id).dtype == DType::kBool) {
        sample.push_back(Constant::scalar_int(DType::kBool, (state = state * 1664525u + 1013904223u) >> 31));
        continue;
      }
      std::vector<float> items(static_cast<size_t>(element_count(graph.value(id).dims)));
      for (float& x : items)
        x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
      sample.push_back(Constant::of<float>(DType::kFloat32, graph.value(id).dims, items));
    }
  return samples;
}

// The file of a graph that was quantized within the limit.
std::string quantized(const Graph& exact, size_t most_resident) {
  Graph graph = exact;
  graph.ledger = std::make_shared<TypeLedger>();
  const std::vector<Sample> samples = made_up(graph, 20);
  SampleList list(samples);
  QuantizeOptions options;
  options.runner.backends = {default_backends().begin(), default_backends().end()};
  options.runner.most_resident = most_resident;
  const ResidentLimit limit(most_resident);
  quantize_graph(graph, &list, options);
  const PlannedModel plan = plan_model(std::make_shared<Graph>(graph), {});
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "sinter_resident_limit_test.sinter";
  emit_model(plan, file);
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(file);
  return bytes;
}

void expect_the_same(const Graph& graph) {
  const std::string bytes = quantized(graph, kResidentFileBytes);
  EXPECT_GT(bytes.size(), 1000u);
  EXPECT_EQ(bytes, quantized(graph, 0));
}

TEST(ResidentLimit, QuantizesAsWithoutOne) {
  for (const char* net : {"depthwise", "gru"}) {
    SCOPED_TRACE(net);
    Diagnostics diagnostics;
    std::optional<Graph> graph = load_graph(
        sinter::testing::source_dir() / "tests/quantize/nets" / (std::string(net) + ".onnx"), diagnostics);
    ASSERT_TRUE(graph);
    run_passes(*graph, {});
    compact_values(*graph);
    expect_the_same(*graph);
  }
}

TEST(ResidentLimit, QuantizesControlFlowAndStatesAsWithoutOne) {
  std::minstd_rand random(3);
  const std::shared_ptr<Graph> graph = RandomBodies(random).make(2);
  graph->states = {{1, 1, "y", "b", nullptr}};
  run_passes(*graph, {});
  expect_the_same(*graph);
}

}  // namespace
}  // namespace sinter::convert

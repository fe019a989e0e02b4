// Whole graphs with steps on a device: planned by the converter, written, read, verified and run. The results
// are those of the host alone, bit for bit, with the planned transfers and the planned bytes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "converter/convert.h"
#include "converter/plan/place_memories.h"
#include "tests/common/load_graph.h"
#include "tests/common/source_dir.h"
#include "tests/memory/far_backend.h"
#include "tests/unit/random_bodies.h"
#include "tests/unit/running.h"

namespace sinter::convert {
namespace {

namespace fs = std::filesystem;
using sinter::testing::AlignedBytes;
using test::FarBackend;

std::function<bool(const OpCall&)> taken;  // by the device

Status accept_far(const Target&, const OpCall& call, int, size_t* workspace) {
  const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(call.op))];
  if (kernel == nullptr || kernel->run == nullptr || !taken(call)) return unsupported("left to the host");
  if (kernel->accept != nullptr) SINTER_RETURN_IF_ERROR(kernel->accept(call));
  *workspace = 0;
  return kernel->workspace != nullptr ? kernel->workspace(call, 1, workspace) : ok_status();
}

const Platform far_platform{.name = "far", .accept = accept_far, .own_memory = true};

bool everything(const OpCall&) { return true; }
bool windows(const OpCall& call) {
  return call.op == Op::kConv || call.op == Op::kDepthwiseConv || call.op == Op::kConvTranspose ||
         call.op == Op::kMaxPool;
}
// About every second operation, always the same ones.
auto some(uint32_t seed) {
  return [seed](const OpCall& call) {
    uint64_t h = seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(call.op);
    for (const TensorView& v : call.inputs)
      h = (h ^ static_cast<uint64_t>(v.size() + 7)) * 0xff51afd7ed558ccd;
    return (h >> 37 & 1) != 0;
  };
}

// One way to run a file.
struct Ran {
  Requirements needs;
  AlignedBytes memory;
  Session session;
  Status status;
  Ran(const Model& model, const SessionOptions& options) {
    auto needed = Session::requirements(model, options);
    if (status = needed.status(); !status.ok()) return;
    needs = *needed;
    memory = AlignedBytes(needs.bytes);
    auto created = Session::create(model, memory.span(), options);
    if (status = created.status(); created.ok()) session = std::move(*created);
  }
  ~Ran() { session.destroy(); }
  std::string why() const {
    char text[256];
    format_status(status, text);
    return text;
  }
};

void fill(const TensorView& view, uint32_t seed) {
  const auto next = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
  for (int64_t i = 0; i < view.size(); ++i) {
    if (view.dtype == DType::kFloat32)
      view.as<float>()[i] = static_cast<float>(next() % 2001) / 1000 - 1;
    else if (view.dtype == DType::kFloat64)
      view.as<double>()[i] = static_cast<double>(next() % 2001) / 1000 - 1;
    else if (const size_t width = byte_width(view.dtype); width > 0)
      view.data[static_cast<size_t>(i) * width] = static_cast<std::byte>(next() % 2);
  }
}

// What the plan has the device do for the steps that a run on the host goes through, once or in every trip.
struct Expected {
  const PlannedModel& plan;
  FarBackend::Counts counts;
  int64_t on_host = 0;

  void add(const StepInfo& info) {
    const Graph& graph = *plan.programs[info.program].graph;
    const Node& node = graph.nodes[info.step];
    if (memory_of(graph, node) == 0) {
      ++on_host;
      return;
    }
    const Value& in = graph.value(node.inputs[0]);
    const auto moved = static_cast<int64_t>(dense_bytes(in.dtype, in.dims));
    if (!is_transfer(graph, node))
      ++counts.steps;
    else if (in.memory == 0)
      ++counts.uploads, counts.bytes_up += moved;
    else
      ++counts.downloads, counts.bytes_down += moved;
  }
};

// What all runs together did.
struct Totals {
  int graphs = 0, on_device = 0, mixed = 0, bodies = 0;
  int64_t transfers = 0, steps = 0;
};

// Whether a step of a body is on a device.
bool in_bodies(const PlannedModel& plan) {
  for (size_t p = 1; p < plan.programs.size(); ++p)
    for (const Node& node : plan.programs[p].graph->nodes)
      if (memory_of(*plan.programs[p].graph, node) > 0) return true;
  return false;
}

void check_graph(std::shared_ptr<Graph> graph, bool islands, Totals* totals) {
  PlanOptions options;
  options.platforms = {&far_platform};
  options.islands = islands, options.thorough = totals->graphs % 4 == 0;
  const PlannedModel plan = plan_model(std::move(graph), options);
  const PlannedProgram& program = plan.programs[0];
  const fs::path file =
      fs::path(::testing::TempDir()) / ("far_network_" + std::to_string(getpid()) + ".sinter");
  emit_model(plan, file);
  AlignedBytes bytes(fs::file_size(file));
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.span().data()), static_cast<std::streamsize>(bytes.span().size()));
  fs::remove(file);
  const OpenOptions open{.kernels = reference_kernels()};
  AlignedBytes model_memory(Model::open_bytes(bytes.span(), open).value());
  auto opened = Model::open(bytes.span(), model_memory.span(), open);
  char text[256];
  format_status(opened.status(), text);
  ASSERT_TRUE(opened.ok()) << text;

  FarBackend far;
  far.work = totals->graphs % 2 == 0 ? test::Work::kAtOnce : test::Work::kHeld;
  Backend* const backends[] = {&far};
  SessionOptions with{.backends = backends}, without{.backend = "reference"};
  Ran there(*opened, with), here(*opened, without);
  ASSERT_TRUE(there.status.ok()) << there.why();
  ASSERT_TRUE(here.status.ok()) << here.why();

  const auto devices = there.needs.on_devices();
  EXPECT_EQ(there.needs.arena, program.regions[0].bytes);
  ASSERT_EQ(devices.size(), program.regions.size() - 1);
  if (!devices.empty()) {
    EXPECT_EQ(devices[0].arena, program.regions[1].bytes);
    EXPECT_EQ(far.allocated(), devices[0].bytes);
  }
  Expected planned{plan, {}};
  const StepObserver observer{&planned, nullptr, [](void* self, const StepInfo& info, const OpCall&) {
                                static_cast<Expected*>(self)->add(info);
                              }};
  here.session.set_observer(&observer);
  ++totals->graphs;
  for (uint32_t run = 0; run < 2; ++run) {
    for (uint32_t i = 0; i < here.session.input_count(); ++i) {
      fill(there.session.input(i), run * 31 + i);
      fill(here.session.input(i), run * 31 + i);
    }
    far.forget_counts();
    planned.counts = {}, planned.on_host = 0;
    const Status a = there.session.run(), b = here.session.run();
    ASSERT_EQ(a.code, b.code);
    if (!a.ok()) break;  // an index out of range, say
    const FarBackend::Counts& counts = far.counts();
    const FarBackend::Counts& expected = planned.counts;
    totals->on_device += run == 0 && expected.steps > 0;
    totals->mixed += run == 0 && expected.steps > 0 && planned.on_host > 0;
    totals->bodies += run == 0 && in_bodies(plan);
    EXPECT_EQ(counts.wrong, 0);
    EXPECT_EQ(counts.steps, expected.steps);
    EXPECT_EQ(counts.uploads, expected.uploads);
    EXPECT_EQ(counts.downloads, expected.downloads);
    EXPECT_EQ(counts.bytes_up, expected.bytes_up);
    EXPECT_EQ(counts.bytes_down, expected.bytes_down);
    EXPECT_EQ(counts.allocations, 0);
    totals->transfers += counts.uploads + counts.downloads, totals->steps += counts.steps;
    for (uint32_t o = 0; o < here.session.output_count(); ++o) {
      const TensorView x = there.session.output(o), y = here.session.output(o);
      ASSERT_EQ(x.dense_bytes(), y.dense_bytes());
      EXPECT_TRUE(x.dense_bytes() == 0 ||
                  std::memcmp(x.data, y.data, static_cast<size_t>(x.dense_bytes())) == 0)
          << "output " << o << " differs";
    }
  }
}

void check_network(const fs::path& onnx, bool islands, Totals* totals) {
  SCOPED_TRACE(onnx.string());
  Diagnostics diagnostics;
  std::optional<Graph> graph = load_graph(onnx, diagnostics);
  if (!graph) return;
  run_passes(*graph, {});
  compact_values(*graph);
  check_graph(std::make_shared<Graph>(std::move(*graph)), islands, totals);
}

std::vector<fs::path> models_below(const fs::path& folder, uintmax_t most_bytes) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.path().extension() == ".onnx" && entry.file_size(error) <= most_bytes)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// ONNX's own cases for its operators, where they have been made (tests/conformance).
TEST(FarNetworks, EveryOperatorsCases) {
  const auto models = models_below(sinter::testing::source_dir() / "build/conformance-data/node", 1 << 20);
  if (models.empty()) GTEST_SKIP() << "no cases of ONNX here";
  Totals totals;
  for (size_t i = 0; i < models.size(); ++i) {
    if (i % 3 == 1)
      taken = some(static_cast<uint32_t>(i));
    else
      taken = everything;
    check_network(models[i], true, &totals);
  }
  std::printf(
      "%d graphs, %d on the device, %d mixed, %d with bodies there; %lld steps there, %lld transfers\n",
      totals.graphs, totals.on_device, totals.mixed, totals.bodies, static_cast<long long>(totals.steps),
      static_cast<long long>(totals.transfers));
  EXPECT_GT(totals.on_device, totals.graphs / 2);
  EXPECT_GT(totals.bodies, 3);
}

// Loops and branches in one another.
TEST(FarNetworks, RandomBodies) {
  std::minstd_rand random(23);
  Totals totals;
  for (uint32_t round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round % 3 == 0)
      taken = everything;
    else
      taken = some(round);
    check_graph(RandomBodies(random).make(1 + static_cast<int>(round % 3)), round % 2 == 0, &totals);
  }
  EXPECT_GT(totals.bodies, 80);
}

class RealNetworks : public ::testing::TestWithParam<const char*> {};

TEST_P(RealNetworks, WithStepsOnADevice) {
  const fs::path folder = sinter::testing::shared_dir() / "models" / GetParam();
  const auto models = models_below(folder, 8 << 20);
  if (models.empty()) GTEST_SKIP() << folder << " has no network";
  Totals totals;
  for (const auto& choice :
       std::vector<std::function<bool(const OpCall&)>>{everything, windows, some(1), some(2)})
    for (const bool islands : {true, false}) {
      taken = choice;
      check_network(models[0], islands, &totals);
    }
  EXPECT_GT(totals.on_device, 1);
  EXPECT_GT(totals.mixed, 0);
  EXPECT_GT(totals.transfers, 0);
}

INSTANTIATE_TEST_SUITE_P(, RealNetworks,
                         ::testing::Values("mlperf-kws", "mlperf-ic", "mcunet-96", "micro-speech", "dtln-1",
                                           "silero-vad-v5-16k-static", "cct-opset20", "big-fanout",
                                           "rnn-loop"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sinter::convert

// Bodies of If and Loop on the emulated device, from the graph to the session: planned by the converter,
// written, read, and run beside the reference kernels.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "converter/convert.h"
#include "converter/ir/builder.h"
#include "converter/plan/place_memories.h"
#include "platforms/cuda/emulator/stand_in.h"
#include "platforms/cuda_emulated/cuda_emulated_backend.h"
#include "platforms/cuda_emulated/platform.h"
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "sinter/packed_weights.h"
#include "sinter/session.h"
#include "tests/common/load_graph.h"
#include "tests/common/source_dir.h"
#include "tests/format/model_builder.h"

namespace sinter::convert {
namespace {

namespace fs = std::filesystem;
using cuda::stand_in_counts;
using sinter::testing::AlignedBytes;

constinit CudaEmulatedBackend device;

PlanOptions on_emulator(bool islands) {
  std::string fault;
  PlanOptions options;
  options.target = parse_target("cuda", &fault).value();
  options.platforms = {&cuda_emulated_platform};
  options.islands = islands;
  return options;
}

// A graph's session on the device and one on the reference kernels.
struct Both {
  PlannedModel plan;
  AlignedBytes file, model_memory, here_memory, there_memory;
  Model model;
  Session here, there;
  Status status;
  Code code = Code::kOk;  // that of the last run

  Both(std::shared_ptr<Graph> graph, bool islands)
      : plan(plan_model(std::move(graph), on_emulator(islands))) {
    const fs::path path = fs::path(::testing::TempDir()) / ("bodies_" + std::to_string(getpid()) + ".sinter");
    emit_model(plan, path);
    file = AlignedBytes(fs::file_size(path));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(file.span().data()), static_cast<std::streamsize>(file.span().size()));
    fs::remove(path);
    const OpenOptions open{.kernels = reference_kernels()};
    auto bytes = Model::open_bytes(file.span(), open);
    if (status = bytes.status(); !status.ok()) return;
    model_memory = AlignedBytes(*bytes);
    auto opened = Model::open(file.span(), model_memory.span(), open);
    if (status = opened.status(); !status.ok()) return;
    model = *opened;
    static Backend* const backends[] = {&device};
    here = create({.backend = "reference"}, &here_memory);
    there = create({.backends = backends}, &there_memory);
  }
  ~Both() { here.destroy(), there.destroy(); }

  Session create(const SessionOptions& options, AlignedBytes* memory) {
    if (!status.ok()) return {};
    auto needs = Session::requirements(model, options);
    if (status = needs.status(); !status.ok()) return {};
    *memory = AlignedBytes(needs->bytes);
    auto created = Session::create(model, memory->span(), options);
    status = created.status();
    return created.ok() ? std::move(*created) : Session();
  }
  std::string why() const {
    char text[256];
    format_status(status, text);
    return text;
  }
  template <class T>
  void set(const char* name, const std::vector<T>& data) {
    for (Session* s : {&here, &there}) std::memcpy(s->input(name).data, data.data(), data.size() * sizeof(T));
  }
  // Checks that both give the same, floats except for the order of sums.
  void run_both() {
    const Status a = here.run(), b = there.run();
    code = a.code;
    ASSERT_EQ(a.code, b.code) << (b.message != nullptr ? b.message : "");
    if (!a.ok()) return;
    for (uint32_t o = 0; o < here.output_count(); ++o) {
      const TensorView x = here.output(o), y = there.output(o);
      if (x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64) {
        EXPECT_TRUE(x.dense_bytes() == 0 ||
                    std::memcmp(x.data, y.data, static_cast<size_t>(x.dense_bytes())) == 0)
            << "output " << o;
        continue;
      }
      for (int64_t i = 0; i < x.size(); ++i) {
        const double p = x.dtype == DType::kFloat32 ? x.as<float>()[i] : x.as<double>()[i];
        const double q = y.dtype == DType::kFloat32 ? y.as<float>()[i] : y.as<double>()[i];
        if (p == q || (std::isnan(p) && std::isnan(q))) continue;
        ASSERT_NEAR(p, q, 1e-5 + 1e-5 * std::fabs(p)) << "output " << o << " element " << i;
      }
    }
  }
  // Counts of steps of bodies on the device, transfers among them, and steps on the host.
  struct InBodies {
    int device = 0, transfers = 0, host = 0;
  };
  InBodies in_bodies() const {
    InBodies count;
    for (size_t p = 1; p < plan.programs.size(); ++p)
      for (size_t n = 0; n < plan.programs[p].steps.size(); ++n) {
        const Graph& graph = *plan.programs[p].graph;
        if (plan.programs[p].steps[n].elided) continue;
        ++(is_transfer(graph, graph.nodes[n])     ? count.transfers
           : memory_of(graph, graph.nodes[n]) > 0 ? count.device
                                                  : count.host);
      }
    return count;
  }
};
#define ASSERT_MADE(both) ASSERT_TRUE((both).status.ok()) << (both).why()

std::vector<float> numbers(size_t n, float scale, uint32_t seed = 0) {
  std::vector<float> v(n);
  for (float& f : v) {
    seed = seed * 1664525 + 1013904223;
    f = scale * (static_cast<float>(seed >> 16 & 1023) / 512 - 1);
  }
  return v;
}

// A graph while it is made.
struct Made {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  ValueId input(DType dtype, Dims dims, const char* name = "") {
    graph->inputs.push_back(graph->add_value(name, dtype, std::move(dims)));
    return graph->inputs.back();
  }
  template <class A>
  ValueId emit(A attrs, std::vector<ValueId> operands) {
    Builder builder(*graph);
    std::vector<ValueId> out;
    EXPECT_TRUE(builder.emit(std::move(attrs), std::move(operands), 1, &out).ok());
    return out.back();
  }
  ValueId weights(Dims dims, float scale, uint32_t seed = 0) {
    const std::vector<float> all = numbers(static_cast<size_t>(element_count(dims)), scale, seed);
    return graph->add_constant(Constant::of<float>(DType::kFloat32, dims, std::span<const float>(all)));
  }
  ValueId yes() { return graph->add_constant(Constant::scalar_int(DType::kBool, 1)); }
  // Returns carried results, scanned results, and the number of trips.
  std::vector<ValueId> loop(const Made& body, int64_t carried, std::vector<ValueId> inputs, int64_t most) {
    std::vector<ValueId> outputs;
    for (size_t i = 1; i < body.graph->outputs.size(); ++i) {
      const Value& v = body.graph->value(body.graph->outputs[i]);
      Dims dims = v.dims;
      if (static_cast<int64_t>(i) > carried) dims.insert(dims.begin(), most);
      outputs.push_back(graph->add_value("", v.dtype, dims));
    }
    outputs.push_back(graph->add_value("", DType::kInt64, {}));
    graph->nodes.push_back({LoopAttrs{most, carried}, std::move(inputs), outputs, "loop", "", {body.graph}});
    return outputs;
  }
  std::shared_ptr<Graph> finish(const std::vector<ValueId>& outputs) {
    graph->outputs = outputs;
    for (size_t i = 0; i < outputs.size(); ++i) graph->value(outputs[i]).name = "out" + std::to_string(i);
    EXPECT_EQ(check(*graph), "");
    return graph;
  }
};

// h = tanh(h W + u V) + captured, six times at most, each h also scanned. The products are worth a trip, and
// no trip moves anything.
TEST(CudaBodies, ALoopOfProductsRunsWithoutTransfersInItsTrips) {
  constexpr int64_t kWide = 128, kMost = 6;
  Made entry, body;
  const ValueId n = entry.input(DType::kInt64, {}, "n"), x = entry.input(DType::kFloat32, {16, kWide}, "x"),
                u = entry.input(DType::kFloat32, {16, kWide}, "u");
  body.input(DType::kInt64, {}), body.input(DType::kBool, {});
  const ValueId h = body.input(DType::kFloat32, {16, kWide}),
                taken = body.input(DType::kFloat32, {16, kWide});
  const ValueId left = body.emit(MatMulAttrs{}, {h, body.weights({kWide, kWide}, 0.1f)});
  const ValueId right = body.emit(MatMulAttrs{}, {taken, body.weights({kWide, kWide}, 0.1f, 1)});
  const ValueId next = body.emit(TanhAttrs{}, {body.emit(AddAttrs{}, {left, right})});
  body.graph->outputs = {body.yes(), next, next};
  const std::vector<ValueId> out = entry.loop(body, 1, {n, kAbsent, x, u}, kMost);
  Both both(entry.finish({entry.emit(NegAttrs{}, {out[0]}), out[1], out[2]}), false);
  ASSERT_MADE(both);
  EXPECT_EQ(both.in_bodies().device, 4);
  EXPECT_EQ(both.in_bodies().transfers, 0);
  EXPECT_EQ(both.in_bodies().host, 0);
  both.set("x", numbers(16 * kWide, 1)), both.set("u", numbers(16 * kWide, 1, 7));
  cuda::StandInCounts first;
  for (const int64_t trips : {int64_t{1}, int64_t{0}, int64_t{3}, kMost}) {
    both.set<int64_t>("n", {trips});
    const cuda::StandInCounts before = stand_in_counts();
    both.run_both();
    cuda::StandInCounts done = stand_in_counts();
    EXPECT_EQ(*both.there.output("out2").as<int64_t>(), trips);
    if (trips == 1) {
      first = done;
      for (int64_t cuda::StandInCounts::*c : {&cuda::StandInCounts::uploads, &cuda::StandInCounts::downloads,
                                              &cuda::StandInCounts::synchronizations})
        first.*c -= before.*c;
      continue;
    }
    EXPECT_EQ(done.uploads - before.uploads, first.uploads);
    EXPECT_EQ(done.downloads - before.downloads, first.downloads);
    EXPECT_EQ(done.synchronizations - before.synchronizations, first.synchronizations);
    EXPECT_EQ(done.allocations - before.allocations, 0);
  }
}

// The device computes the condition: one download and one wait in each trip.
TEST(CudaBodies, ADecoderStopsWhereItsOwnTokensSaySo) {
  constexpr int64_t kTokens = 12, kWide = 16, kMost = 20;
  Made entry, body;
  const ValueId token = entry.input(DType::kInt64, {1}, "token"),
                hidden = entry.input(DType::kFloat32, {1, kWide}, "h"),
                last = entry.input(DType::kInt64, {1}, "last");
  body.input(DType::kInt64, {}), body.input(DType::kBool, {});
  const ValueId t = body.input(DType::kInt64, {1}), h = body.input(DType::kFloat32, {1, kWide}),
                end = body.input(DType::kInt64, {1});
  const ValueId row = body.emit(GatherAttrs{0}, {body.weights({kTokens, kWide}, 1), t});
  const ValueId mixed =
      body.emit(AddAttrs{}, {row, body.emit(MatMulAttrs{}, {h, body.weights({kWide, kWide}, 0.5f, 2)})});
  const ValueId state = body.emit(TanhAttrs{}, {mixed});
  const ValueId scores = body.emit(MatMulAttrs{}, {state, body.weights({kWide, kTokens}, 1, 3)});
  const ValueId best = body.emit(ArgReduceAttrs{0, 1, 0, 0}, {scores});
  const ValueId more =
      body.emit(ViewAttrs{IntList{}, -1},
                {body.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kNotEqual)}, {best, end})});
  body.graph->outputs = {more, best, state, best};
  const std::vector<ValueId> out = entry.loop(body, 2, {kAbsent, kAbsent, token, hidden, last}, kMost);
  Both both(entry.finish({out[0], out[2], out[3]}), true);
  ASSERT_MADE(both);
  EXPECT_EQ(both.in_bodies().host, 0);
  EXPECT_EQ(both.in_bodies().transfers, 1);
  std::set<int64_t> lengths;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    both.set("h", numbers(kWide, 1, seed));
    both.set<int64_t>("token", {seed % kTokens}), both.set<int64_t>("last", {seed * 5 % kTokens});
    const int64_t before = stand_in_counts().synchronizations;
    both.run_both();
    const int64_t waits = stand_in_counts().synchronizations - before;
    const int64_t trips = *both.here.output("out2").as<int64_t>();
    if (both.code == Code::kOk) {
      EXPECT_EQ(waits, trips + 2);  // for the inputs, in each trip, at the end
      lengths.insert(trips);
    } else {
      EXPECT_EQ(waits, kMost + 2);
    }
  }
  EXPECT_GT(lengths.size(), 2u);
}

// The body reads a captured value's rows by the iteration number, which the device counts; also zero trips.
TEST(CudaBodies, TheDeviceCountsTripsItself) {
  constexpr int64_t kMost = 9;
  Made entry, body;
  const ValueId n = entry.input(DType::kInt64, {}, "n"), x = entry.input(DType::kFloat32, {kMost, 8}, "x"),
                h0 = entry.input(DType::kFloat32, {8}, "h");
  const ValueId i = body.input(DType::kInt64, {});
  body.input(DType::kBool, {});
  const ValueId h = body.input(DType::kFloat32, {8}), all = body.input(DType::kFloat32, {kMost, 8});
  const ValueId row = body.emit(GatherAttrs{0}, {all, i});
  const ValueId next = body.emit(SigmoidAttrs{}, {body.emit(AddAttrs{}, {h, row})});
  body.graph->outputs = {body.yes(), next, next, i};
  const std::vector<ValueId> out = entry.loop(body, 1, {n, kAbsent, h0, x}, kMost);
  Both both(entry.finish({out[0], out[1], out[2], out[3]}), true);
  ASSERT_MADE(both);
  EXPECT_EQ(both.in_bodies().host, 0);
  EXPECT_EQ(both.in_bodies().transfers, 0);
  both.set("x", numbers(kMost * 8, 1)), both.set("h", numbers(8, 1, 3));
  for (const int64_t trips : {int64_t{0}, int64_t{4}, kMost, int64_t{1}}) {
    both.set<int64_t>("n", {trips});
    both.run_both();
  }
}

TEST(CudaBodies, BothBranchesOfAnIfGiveTheirResult) {
  Made entry, then, otherwise;
  const ValueId q = entry.input(DType::kBool, {}, "q"), x = entry.input(DType::kFloat32, {128, 128}, "x");
  const ValueId here = then.input(DType::kFloat32, {128, 128});
  then.graph->outputs = {then.emit(MatMulAttrs{}, {here, then.weights({128, 128}, 0.1f)}), here};
  const ValueId there = otherwise.input(DType::kFloat32, {128, 128});
  const ValueId product = otherwise.emit(MatMulAttrs{}, {there, there});
  otherwise.graph->outputs = {otherwise.emit(TanhAttrs{}, {product}), product};
  const ValueId r = entry.graph->add_value("", DType::kFloat32, {128, 128}),
                s = entry.graph->add_value("", DType::kFloat32, {128, 128});
  entry.graph->nodes.push_back({IfAttrs{}, {q, x}, {r, s}, "if", "", {then.graph, otherwise.graph}});
  Both both(entry.finish({entry.emit(AddAttrs{}, {r, s})}), false);
  ASSERT_MADE(both);
  EXPECT_EQ(both.in_bodies().device, 3);
  EXPECT_EQ(both.in_bodies().host + both.in_bodies().transfers, 0);
  both.set("x", numbers(128 * 128, 0.5f));
  for (const bool taken : {true, false, true}) {
    both.set<uint8_t>("q", {taken});
    both.run_both();
  }
}

// A constant is brought to the device once for a step of the entry, for a body's in all trips, and for
// sessions.
TEST(CudaBodies, ConstantsAreBroughtOnce) {
  constexpr int64_t kWide = 96;
  Made entry, body;
  const ValueId n = entry.input(DType::kInt64, {}, "n"), x = entry.input(DType::kFloat32, {64, kWide}, "x");
  const ValueId before = entry.emit(MatMulAttrs{}, {x, entry.weights({kWide, kWide}, 0.1f)});
  body.input(DType::kInt64, {}), body.input(DType::kBool, {});
  const ValueId h = body.input(DType::kFloat32, {64, kWide});
  const ConstantPtr same = entry.graph->value(entry.graph->nodes[0].inputs[1]).constant;
  const ValueId next = body.emit(MatMulAttrs{}, {h, body.graph->add_constant(same)});
  body.graph->outputs = {body.yes(), next};
  Both both(entry.finish({entry.loop(body, 1, {n, kAbsent, before}, 5)[0]}), true);
  ASSERT_MADE(both);
  EXPECT_EQ(both.in_bodies().device, 1);
  both.set("x", numbers(64 * kWide, 1)), both.set<int64_t>("n", {5});
  both.run_both();
  static Backend* const backends[] = {&device};
  const SessionOptions alone{.backends = backends};
  const auto weights = static_cast<size_t>(kWide * kWide) * sizeof(float);
  auto needs = Session::requirements(both.model, alone);
  ASSERT_TRUE(needs.ok());
  EXPECT_GE(needs->devices[0].prepared, weights);
  EXPECT_LT(needs->devices[0].prepared, 2 * weights);
  auto shared = PackedWeights::requirements(both.model, alone);
  ASSERT_TRUE(shared.ok());
  std::byte* block = nullptr;
  ASSERT_TRUE(device.allocate(shared->devices[0].bytes, kBufferAlignment, &block).ok());
  const DeviceBlock given[] = {{"cuda-emulated", {block, shared->devices[0].bytes}}};
  AlignedBytes memory(shared->bytes);
  auto packed = PackedWeights::create(both.model, memory.span(), {.backends = backends, .devices = given});
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->count(), 1u);
  const SessionOptions sharing{.backends = backends, .packed_weights = &*packed};
  needs = Session::requirements(both.model, sharing);
  ASSERT_TRUE(needs.ok());
  EXPECT_LT(needs->devices[0].prepared, weights);
  both.there.destroy();
  both.there = both.create(sharing, &both.there_memory);
  ASSERT_MADE(both);
  both.set("x", numbers(64 * kWide, 1, 5)), both.set<int64_t>("n", {3});
  both.run_both();
  both.there.destroy();
  device.free(block);
}

TEST(CudaBodies, AFaultIsThatOfTheFirstStepThatFails) {
  Made entry, body;
  const ValueId n = entry.input(DType::kInt64, {}, "n"), start = entry.input(DType::kInt64, {2}, "i");
  body.input(DType::kInt64, {}), body.input(DType::kBool, {});
  const ValueId p = body.input(DType::kInt64, {2});
  const std::vector<int64_t> table{1, 2, 3, 9};
  const ValueId next = body.emit(
      GatherAttrs{0},
      {body.graph->add_constant(Constant::of<int64_t>(DType::kInt64, {4}, std::span<const int64_t>(table))),
       p});
  body.graph->outputs = {body.yes(), next};
  const std::vector<ValueId> out = entry.loop(body, 1, {n, kAbsent, start}, 9);
  // A later step of the entry fails as well, and has a lower number in no program.
  const ValueId again = entry.emit(
      GatherAttrs{0},
      {entry.graph->add_constant(Constant::of<int64_t>(DType::kInt64, {4}, std::span<const int64_t>(table))),
       out[0]});
  Both both(entry.finish({again}), true);
  ASSERT_MADE(both);
  both.set<int64_t>("i", {0, 0});
  both.set<int64_t>("n", {2});
  both.run_both();
  both.set<int64_t>("n", {6});
  const Status status = both.there.run();
  EXPECT_EQ(status.code, Code::kOutOfRange);
  EXPECT_EQ(status.where, Where::kStep);
  EXPECT_EQ(status.program, 1);
  EXPECT_EQ(both.plan.programs[1].graph->nodes[static_cast<size_t>(status.index)].op(), Op::kGather);
  both.set<int64_t>("n", {2});
  both.run_both();
}

// The cases are ONNX's own with control flow, if they were made (tests/conformance), whatever their size.
TEST(CudaBodies, OnnxCasesWithBodies) {
  const fs::path folder = sinter::testing::source_dir() / "build/conformance-data/node";
  std::error_code error;
  int graphs = 0, on_device = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.path().extension() != ".onnx") continue;
    Diagnostics diagnostics;
    std::optional<Graph> graph = load_graph(entry.path(), diagnostics);
    if (!graph) continue;
    run_passes(*graph, {});
    compact_values(*graph);
    if (std::ranges::none_of(graph->nodes, [](const Node& n) { return !n.bodies.empty(); })) continue;
    SCOPED_TRACE(entry.path().string());
    Both both(std::make_shared<Graph>(std::move(*graph)), true);
    ASSERT_MADE(both);
    ++graphs;
    on_device += both.in_bodies().device > 0;
    for (uint32_t seed = 0; seed < 3; ++seed) {
      for (uint32_t i = 0; i < both.here.input_count(); ++i)
        for (Session* s : {&both.here, &both.there}) {
          const TensorView v = s->input(i);
          const std::vector<float> some = numbers(static_cast<size_t>(v.size()), 1, seed + i);
          for (int64_t k = 0; k < v.size(); ++k)
            if (v.dtype == DType::kFloat32)
              v.as<float>()[k] = some[static_cast<size_t>(k)];
            else
              v.data[static_cast<size_t>(k) * byte_width(v.dtype)] =
                  std::byte{static_cast<uint8_t>((k + seed) % 2)};
        }
      both.run_both();
    }
  }
  if (graphs == 0) GTEST_SKIP() << "no cases of ONNX here";
  std::printf("%d graphs with bodies, %d with steps of them on the device\n", graphs, on_device);
  EXPECT_GT(on_device, 5);
}

}  // namespace
}  // namespace sinter::convert

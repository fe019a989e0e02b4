// A network that is fed its own outputs, in the order of copies that session.h prescribes: a chain of causal
// convolutions, one time step a run, against the same convolutions over the whole sequence.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>

#include "converter/emit/emitter.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "tests/format/model_builder.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

constexpr int kLayers = 8, kTaps = 3, kChannels = 8, kTimes = 12;

// Numbers between -0.5 and 0.5.
float filling(int seed, int i) {
  return static_cast<float>((seed * 7919 + i * 104729) % 1009) / 1009.0f - 0.5f;
}

std::vector<float> weights_of(int layer) {
  std::vector<float> w(static_cast<size_t>(kChannels * kTaps * kChannels));
  for (size_t i = 0; i < w.size(); ++i) w[i] = filling(layer + 1, static_cast<int>(i));
  return w;
}

// y[t] = relu(w . x[t - 2 .. t]), layer after layer, over all times. [time][channel].
std::vector<std::vector<double>> whole_sequence(std::vector<std::vector<double>> x) {
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::vector<float> w = weights_of(layer);
    std::vector<std::vector<double>> y(x.size(), std::vector<double>(kChannels));
    for (int t = 0; t < kTimes; ++t)
      for (int o = 0; o < kChannels; ++o) {
        double sum = 0;
        for (int k = 0; k < kTaps; ++k)
          for (int c = 0; c < kChannels; ++c)
            if (const int from = t + k - (kTaps - 1); from >= 0)
              sum += static_cast<double>(w[static_cast<size_t>((o * kTaps + k) * kChannels + c)]) *
                     x[static_cast<size_t>(from)][static_cast<size_t>(c)];
        y[static_cast<size_t>(t)][static_cast<size_t>(o)] = std::max(sum, 0.0);
      }
    x = std::move(y);
  }
  return x;
}

// Inputs x and, for each layer, the two times before; outputs y and, for each layer, what comes in their
// place.
PlannedModel one_step() {
  testing::Sketch s;
  ValueId h = s.input({1, 1, kChannels});
  s.graph.value(h).name = "x";
  std::vector<ValueId> next;
  for (int layer = 0; layer < kLayers; ++layer) {
    const ValueId before = s.input({1, kTaps - 1, kChannels});
    s.graph.value(before).name = "before" + std::to_string(layer);
    const ValueId all = s.emit(ConcatAttrs{1}, {before, h});
    const ValueId w = s.graph.add_constant(
        Constant::of<float>(DType::kFloat32, {kChannels, kTaps, kChannels}, weights_of(layer)));
    ConvAttrs conv{{1}, {1}, {0, 0}};
    conv.act_min = 0;
    const SliceAttrs tail{IntList{0, 1, 0}, IntList{1, 1, 1}, IntList{1, kTaps - 1, kChannels}};
    next.push_back(s.emit(tail, {all}));
    h = s.emit(conv, {all, w});
  }
  s.output(h, "y");
  for (int layer = 0; layer < kLayers; ++layer)
    s.output(next[static_cast<size_t>(layer)], "next" + std::to_string(layer));
  PlanOptions options;
  options.thorough = true;
  return plan_model(std::make_shared<Graph>(s.graph), options);
}

TEST(Recurrence, OutputsAreCopiedOutBeforeInputsAreWritten) {
  std::string folder = (std::filesystem::temp_directory_path() / "sinter-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(folder) / "chain.sinter";
  emit_model(one_step(), path);
  const auto file = FileMap::open(path.c_str(), FileMap::Mode::kCopied);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(file.ok());
  const OpenOptions open{.kernels = reference_kernels()};
  sinter::testing::AlignedBytes opened(sinter::Model::open_bytes(file.value().bytes(), open).value());
  auto model = sinter::Model::open(file.value().bytes(), opened.span(), open);
  ASSERT_TRUE(model.ok());
  sinter::testing::AlignedBytes memory(Session::requirements(*model, {}).value().bytes);
  auto session = Session::create(*model, memory.span(), {});
  ASSERT_TRUE(session.ok());

  // What makes the order matter: an input on the memory of an output that belongs to a later one.
  constexpr size_t kBytes = (kTaps - 1) * kChannels * sizeof(float);
  bool shared = false;
  for (uint32_t to = 1; to <= kLayers; ++to)
    for (uint32_t from = to + 1; from <= kLayers; ++from) {
      const std::byte *in = session->input(to).data, *out = session->output(from).data;
      shared = shared || (in < out + kBytes && out < in + kBytes);
    }
  EXPECT_TRUE(shared) << "the plan keeps inputs and outputs apart: this test shows nothing";

  std::vector<std::vector<double>> x(kTimes, std::vector<double>(kChannels));
  for (int t = 0; t < kTimes; ++t)
    for (int c = 0; c < kChannels; ++c)
      x[static_cast<size_t>(t)][static_cast<size_t>(c)] = static_cast<double>(filling(99, t * kChannels + c));
  const auto expected = whole_sequence(x);
  std::vector<std::vector<std::byte>> kept(kLayers, std::vector<std::byte>(kBytes));
  for (uint32_t layer = 0; layer < kLayers; ++layer) std::memset(session->input(layer + 1).data, 0, kBytes);
  for (size_t t = 0; t < kTimes; ++t) {
    for (size_t c = 0; c < kChannels; ++c) session->input("x").as<float>()[c] = static_cast<float>(x[t][c]);
    ASSERT_TRUE(session->run().ok());
    for (size_t c = 0; c < kChannels; ++c)
      EXPECT_NEAR(static_cast<double>(session->output("y").as<float>()[c]), expected[t][c], 1e-5)
          << "time " << t << ", channel " << c;
    for (uint32_t layer = 0; layer < kLayers; ++layer)
      std::memcpy(kept[layer].data(), session->output(layer + 1).data, kBytes);
    for (uint32_t layer = 0; layer < kLayers; ++layer)
      std::memcpy(session->input(layer + 1).data, kept[layer].data(), kBytes);
  }
}

}  // namespace
}  // namespace sinter::convert

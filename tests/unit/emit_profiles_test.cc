// One file of a model that is planned for several targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>

#include "converter/emit/emitter.h"
#include "converter/target/target_names.h"
#include "runtime/model/model_state.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "tests/format/model_builder.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

constexpr int kWidth = 96;

// y = relu(x w1) w2, or the same in another order of nodes: with x twice as a step more.
std::shared_ptr<Graph> two_products(const ConstantPtr& w1, const ConstantPtr& w2, bool copies) {
  testing::Sketch s;
  const ValueId x = s.input({2, kWidth});
  s.graph.value(x).name = "x";
  const ValueId from = copies ? s.emit(CopyAttrs{}, {x}) : x;
  FullyConnectedAttrs relu;
  relu.act_min = 0;
  const ValueId h = s.emit(relu, {from, s.graph.add_constant(w1)});
  s.output(s.emit(FullyConnectedAttrs{}, {h, s.graph.add_constant(w2)}), "y");
  return std::make_shared<Graph>(s.graph);
}

ConstantPtr weights(int seed) {
  std::vector<float> w(kWidth * kWidth);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>((static_cast<size_t>(seed) * 7919 + i * 104729) % 1009) / 1009.0f - 0.5f;
  return Constant::of<float>(DType::kFloat32, {kWidth, kWidth}, w);
}

PlannedModel planned(const std::string& target, bool copies) {
  PlanOptions options;
  std::string fault;
  options.target = parse_target(target, &fault).value();
  // The second plan has constants of its own with equal bytes, as another run of the passes would make them.
  return plan_model(two_products(weights(1), weights(2), copies), options);
}

class EmitProfiles : public ::testing::Test {
 protected:
  EmitProfiles() {
    std::string folder = (std::filesystem::temp_directory_path() / "sinter-XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    path_ = std::filesystem::path(folder) / "model.sinter";
  }
  ~EmitProfiles() override { std::filesystem::remove_all(path_.parent_path()); }

  Model open() {
    auto file = FileMap::open(path_.c_str(), FileMap::Mode::kCopied);
    EXPECT_TRUE(file.ok());
    file_ = std::move(file.value());
    const OpenOptions options{.kernels = reference_kernels()};
    memory_ = sinter::testing::AlignedBytes(Model::open_bytes(file_.bytes(), options).value());
    auto model = Model::open(file_.bytes(), memory_.span(), options);
    EXPECT_TRUE(model.ok()) << model.status().message;
    return model.ok() ? *model : Model();
  }
  static std::vector<float> run(const Model& model, const char* profile) {
    const SessionOptions options{.profile = profile};
    const sinter::testing::AlignedBytes memory(Session::requirements(model, options).value().bytes);
    auto session = Session::create(model, memory.span(), options);
    EXPECT_TRUE(session.ok());
    const TensorView x = session->input("x");
    for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i % 17) - 8;
    EXPECT_TRUE(session->run().ok());
    const TensorView y = session->output("y");
    return {y.as<float>(), y.as<float>() + y.size()};
  }

  std::filesystem::path path_;
  FileMap file_;
  sinter::testing::AlignedBytes memory_;
};

TEST_F(EmitProfiles, ProgramsOfTheirOwnShareConstants) {
  const uint64_t alone = emit_model(planned("x86_64", false), path_).weight_bytes;
  const std::vector<PlannedModel> both = {planned("x86_64", false), planned("portable", true)};
  const EmitSummary summary = emit_model(both, path_);
  EXPECT_EQ(summary.weight_bytes, alone);
  EXPECT_EQ(summary.constants, 2u);
  const Model model = open();
  ASSERT_TRUE(model.valid());
  ASSERT_EQ(model.profile_count(), 2u);
  EXPECT_STREQ(model.profile_name(0), "x86_64");
  EXPECT_STREQ(model.profile_name(1), "portable");
  EXPECT_EQ(model.default_profile(), kHostArchitecture == Architecture::kX86_64 ? 0u : 1u);
  EXPECT_EQ(model.program_count(), 2u);
  EXPECT_NE(model.entry_program(0, 0), model.entry_program(0, 1));
  EXPECT_EQ(run(model, "x86_64"), run(model, "portable"));
}

TEST_F(EmitProfiles, EqualProgramsAreStoredOnce) {
  const std::vector<PlannedModel> both = {planned("aarch64", false), planned("portable", true),
                                          planned("x86_64", false)};
  emit_model(both, path_);
  const Model model = open();
  ASSERT_TRUE(model.valid());
  EXPECT_EQ(model.profile_count(), 3u);
  EXPECT_EQ(model.program_count(), 2u);
  EXPECT_EQ(model.entry_program(0, 0), model.entry_program(0, 2));
  EXPECT_EQ(run(model, "aarch64"), run(model, "x86_64"));
}

TEST_F(EmitProfiles, ATargetComesOnce) {
  const std::vector<PlannedModel> twice = {planned("portable", false), planned("portable", true)};
  EXPECT_THROW(emit_model(twice, path_), std::invalid_argument);
  EXPECT_THROW(emit_model(std::span<const PlannedModel>(), path_), std::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace sinter::convert

// platforms/template/ is a platform as its page describes one: its calls are planned for it and run on it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "converter/emit/emitter.h"
#include "converter/plan/planner.h"
#include "platforms/template/platform.h"
#include "platforms/template/template_backend.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "tests/format/model_builder.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

TEST(TemplatePlatform, ComputesWhatIsPlannedForIt) {
  testing::Sketch s;
  const ValueId x = s.input({2, 3});
  s.output(s.emit(ExpAttrs{}, {s.emit(NegAttrs{}, {x})}), "y");
  PlanOptions options;
  options.platforms = {&template_platform};
  const PlannedModel plan = plan_model(std::make_shared<Graph>(s.graph), options);
  EXPECT_EQ(plan.backends, (std::vector<std::string>{"template", "reference"}));
  EXPECT_EQ(plan.programs[0].steps[0].candidates, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(plan.programs[0].steps[1].candidates, (std::vector<uint8_t>{1}));

  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "template_platform.sinter";
  emit_model(plan, path);
  auto file = FileMap::open(path.c_str(), FileMap::Mode::kCopied);
  std::filesystem::remove(path);
  ASSERT_TRUE(file.ok());
  const OpenOptions open{.kernels = reference_kernels()};
  sinter::testing::AlignedBytes opened(Model::open_bytes(file->bytes(), open).value());
  auto model = Model::open(file->bytes(), opened.span(), open);
  ASSERT_TRUE(model.ok());

  TemplateBackend backend;
  Backend* const backends[] = {&backend};
  const SessionOptions with{.backends = backends, .require_planned = true}, without{.require_planned = true};
  EXPECT_FALSE(Session::requirements(*model, without).ok()) << "Neg would be a fallback";
  sinter::testing::AlignedBytes memory(Session::requirements(*model, with).value().bytes);
  auto session = Session::create(*model, memory.span(), with);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->fallbacks(), 0u);
  const std::vector<double> numbers = s.feeds[0]->as_doubles();
  for (size_t i = 0; i < numbers.size(); ++i)
    session->input(0u).as<float>()[i] = static_cast<float>(numbers[i]);
  ASSERT_TRUE(session->run().ok());
  for (size_t i = 0; i < numbers.size(); ++i)
    EXPECT_NEAR(static_cast<double>(session->output(0u).as<float>()[i]), std::exp(-numbers[i]), 1e-5);
}

}  // namespace
}  // namespace sinter::convert

// The suite of operations tests a platform that it does not name, and finds a fault in one.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "platforms/template/platform.h"
#include "platforms/template/template_backend.h"
#include "tests/op_harness/backends.h"

namespace sinter::test {
namespace {

const Tensor x = noise<float>({3, 5, 7}, -2, 2, 1);

TEST(TemplateInTheSuite, RunsWhatItTakes) {
  TemplateBackend backend;
  const AlsoTested also(backend, template_platform);
  const TestedBackend& tested = *tested_backend("template");
  EXPECT_TRUE(tested.claims(Op::kNeg));
  EXPECT_FALSE(tested.claims(Op::kAbs));
  check_taken_by("template", NegAttrs{}, {x});
  run_op(AbsAttrs{}, {x});
  EXPECT_EQ(tested.calls.size(), 1u);
  EXPECT_GE(tested.calls.at(Op::kNeg), 3) << "one thread, several threads, in place";
}

// The template with a fault.
enum class Fault { kValue, kThreads, kWorkspace, kUnplanned, kWritesBeside };
Fault fault;

Status run_wrongly(void*, const OpCall& call, RunContext& context) {
  const auto* from = call.in(0).as<const float>();
  auto* to = call.out(0).as<float>();
  const int64_t n = call.out(0).size();
  for (int64_t i = 0; i < n; ++i) to[i] = -from[i];
  if (fault == Fault::kValue || (fault == Fault::kThreads && context.threads != nullptr)) to[n - 1] += 1;
  if (fault == Fault::kWritesBeside) to[n] = 1;
  return ok_status();
}

class FaultyBackend final : public Backend {
 public:
  const char* name() const override { return "template"; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override {
    if (fault == Fault::kUnplanned) return unsupported("not on this machine");
    SINTER_RETURN_IF_ERROR(TemplateBackend().measure(call, threads, needs));
    if (fault == Fault::kWorkspace) needs->workspace = 64;
    return ok_status();
  }
  Status prepare(const OpCall&, const Preparation&, PreparedStep* step) override {
    step->run = run_wrongly;
    return ok_status();
  }
  void release(PreparedStep&) override {}
};

TEST(TemplateInTheSuite, FaultsAreFound) {
  static FaultyBackend backend;
  const AlsoTested also(backend, template_platform);
  for (const auto& [wrong, message] : {std::pair{Fault::kValue, ", expected "},
                                       {Fault::kThreads, "several threads: other bits"},
                                       {Fault::kWorkspace, "the planned workspace does not suffice"},
                                       {Fault::kUnplanned, "planned for template, which refuses"},
                                       {Fault::kWritesBeside, "bytes beside output 0 changed"}}) {
    fault = wrong;
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter record(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      run_op(NegAttrs{}, {x});
    }
    bool found = false;
    for (int i = 0; i < failures.size(); ++i)
      found |=
          std::string_view(failures.GetTestPartResult(i).message()).find(message) != std::string_view::npos;
    EXPECT_TRUE(found) << message;
  }
}

}  // namespace
}  // namespace sinter::test

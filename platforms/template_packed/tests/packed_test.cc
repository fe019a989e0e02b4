// platforms/template_packed/ is a platform on request with packed weights, as its page describes one.
#include <gtest/gtest.h>

#include "platforms/template_packed/platform.h"
#include "platforms/template_packed/template_packed_backend.h"
#include "tests/op_harness/backends.h"

namespace sinter::test {
namespace {

const char* const kName = "template_packed";

TEST(TemplatePacked, RunsWhatItTakesInTheSuite) {
  TemplatePackedBackend backend;
  const AlsoTested also(backend, template_packed_platform);
  for (const int64_t columns : {1, 8, 19}) {
    const Tensor x = noise<float>({3, 5, 7}, -2, 2, 1), bias = noise<float>({columns}, -1, 1, 2);
    const Tensor weights = noise<float>({columns, 7}, -1, 1, 3);
    check_taken_by(kName, FullyConnectedAttrs{-0.5, 6}, {x, weights, bias});
    check_taken_by(kName, FullyConnectedAttrs{}, {x, weights});
  }
  EXPECT_FALSE(tested_backend(kName)->claims(Op::kConv));
}

// A plan names it on request only; its time is known on the processor that it is listed for.
TEST(TemplatePacked, IsPlannedOnRequestByItsTimes) {
  const Platform& p = template_packed_platform;
  EXPECT_TRUE(p.on_request);
  OpCall call;
  call.op = Op::kFullyConnected;
  EXPECT_EQ(p.time(Cpu::kPortable, call), 1.0);
  EXPECT_EQ(p.time(Cpu::kAvx2, call), std::nullopt);
}

}  // namespace
}  // namespace sinter::test

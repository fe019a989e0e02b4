// A backend that states that it computes an operation runs at least one case of it.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/op_harness/backends.h"

namespace sinter::test {
namespace {

class Coverage final : public testing::Environment {
 public:
  // Only after all cases: not where a filter or a shard leaves some out.
  void TearDown() override {
    const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
    if (unit.test_to_run_count() != unit.total_test_count()) return;
    for (const TestedBackend& tested : tested_backends()) {
      int64_t calls = 0;
      for (const auto& [op, count] : tested.calls) calls += count;
      std::printf("%s ran %lld calls of %zu operations\n", tested.platform->name,
                  static_cast<long long>(calls), tested.calls.size());
      for (int i = 0; i < kOpCount; ++i) {
        const OpInfo& info = op_info_at(i);
        EXPECT_TRUE(!tested.claims(info.op) || tested.calls.contains(info.op))
            << tested.platform->name << " has a kernel for " << info.name
            << ", but no case of tests/ops runs on it";
      }
    }
  }
};

const testing::Environment* const kCoverage = testing::AddGlobalTestEnvironment(new Coverage);

}  // namespace
}  // namespace sinter::test

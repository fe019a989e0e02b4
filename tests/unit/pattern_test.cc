// Patterns of passes.
#include "converter/passes/pattern.h"

#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace testing {
namespace {

TEST(Pattern, TakesOperandsInEitherOrderAndCapturesOneValue) {
  for (const bool swapped : {false, true}) {
    Sketch s;
    const ValueId x = s.input({4}), other = s.input({4});
    const ValueId sigmoid = s.emit(SigmoidAttrs{}, {x});
    const ValueId same = s.emit(MulAttrs{}, swapped ? std::vector{sigmoid, x} : std::vector{x, sigmoid});
    const ValueId different = s.emit(MulAttrs{}, {other, sigmoid});
    Editor e(s.graph);
    Capture c;
    const Pattern silu = commuted<MulAttrs>(c, op<SigmoidAttrs>(c));
    ValueId met = kAbsent;
    EXPECT_TRUE(silu.match(e, same, [&] { return met = c, true; }));
    EXPECT_EQ(met, x);
    EXPECT_EQ(c.id, kAbsent) << "a capture holds only while the match is looked at";
    EXPECT_FALSE(silu.match(e, different, [] { return true; }));
    EXPECT_FALSE(once(op<SigmoidAttrs>(c)).match(e, sigmoid, [] { return true; })) << "two read it";
  }
}

TEST(Pattern, TriesEveryWayUntilOneIsAccepted) {
  Sketch s;
  const ValueId x = s.input({4}), y = s.input({4}), sum = s.emit(AddAttrs{}, {x, y});
  const ValueId clamped = s.emit(AddAttrs{0, 1}, {x, y});
  const ValueId shifted = s.emit(AddAttrs{}, {s.scalar(3), x});
  Editor e(s.graph);
  Capture a, b;
  std::vector<ValueId> first;
  const Pattern add = commuted<AddAttrs>(a, b);
  EXPECT_FALSE(any_of(add, add).match(e, sum, [&] { return first.push_back(a), false; }));
  EXPECT_EQ(first, (std::vector{x, y, x, y}));
  EXPECT_FALSE(add.match(e, clamped, [] { return true; })) << "it clamps its result";
  double number_met = 0;
  const Pattern plus = commuted<AddAttrs>(a, number([](double v) { return v > 2; }, &number_met));
  EXPECT_TRUE(plus.match(e, shifted, [&] { return number_met == 3 && a == x; }));
  EXPECT_EQ(number_met, 0);
  EXPECT_FALSE(commuted<AddAttrs>(a, 2.0).match(e, shifted, [] { return true; }));
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert

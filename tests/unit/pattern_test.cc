// Patterns of passes, and the rewrites by which a pass can be stopped.
#include "converter/passes/pattern.h"

#include "converter/diagnostics/errors.h"
#include "converter/passes/pass.h"
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

// Three SiLUs written out, each by a node of its own.
Sketch three_products() {
  Sketch s;
  for (const char* name : {"first", "second", "third"}) {
    const ValueId x = s.input({4});
    const ValueId y = s.emit(MulAttrs{}, {x, s.emit(SigmoidAttrs{}, {x})});
    s.graph.nodes.back().name = name;
    s.output(y, std::string(name) + "_out");
  }
  return s;
}

TEST(StopAfter, EndsAtARewriteAndNamesItsNode) {
  const char* const names[] = {"", "first", "second", "third", "third"};
  for (const int count : {0, 1, 2, 3, 9}) {
    Sketch s = three_products();
    const auto before = evaluate_graph(s.graph, s.feeds);
    PassOptions options;
    options.stop = parse_pass_stop("recognise-activations:" + std::to_string(count));
    const PassReport report = run_passes(s.graph, options);
    const auto silus = std::count_if(s.graph.nodes.begin(), s.graph.nodes.end(),
                                     [](const Node& node) { return node.op() == Op::kSilu; });
    EXPECT_EQ(silus, std::min(count, 3));
    ASSERT_NE(report.stopped(), nullptr);
    EXPECT_EQ(report.stopped()->name, "recognise-activations");
    EXPECT_EQ(report.stopped()->rewrites.made, std::min(count, 3));
    EXPECT_EQ(report.stopped()->rewrites.last, names[std::min(count, 4)]);
    const auto after = evaluate_graph(s.graph, s.feeds);
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i)
      for (size_t j = 0; j < after[i].size(); ++j) EXPECT_NEAR(after[i][j], before[i][j], 1e-12);
  }
}

TEST(StopAfter, CountsAPassThatRebuildsTheGraphAsOneRewrite) {
  for (const int count : {0, 1}) {
    Sketch s = three_products();
    s.emit(NegAttrs{}, {s.graph.inputs[0]});
    PassOptions options;
    options.stop = parse_pass_stop("dead-code:" + std::to_string(count));
    const PassReport report = run_passes(s.graph, options);
    EXPECT_EQ(s.graph.nodes.size(), count == 0 ? 7u : 6u);
    EXPECT_EQ(report.stopped()->rewrites.made, count);
  }
}

TEST(StopAfter, TakesPassesAndNumbers) {
  EXPECT_EQ(parse_pass_stop("3").passes, 3u);
  EXPECT_EQ(parse_pass_stop("dead-code").passes, 1u);
  EXPECT_EQ(parse_pass_stop("widen:4").passes, 2u);
  EXPECT_EQ(parse_pass_stop("widen:4").rewrites, 4);
  for (const char* text : {"", "-1", "3:4", "widen:", "widen:-1", "widen:x", "no-pass", "no-pass:1"})
    EXPECT_THROW(parse_pass_stop(text), UsageError) << text;
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert

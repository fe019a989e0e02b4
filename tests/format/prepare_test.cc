// Prepare lists: what the verifier lets pass, and every way in which one can be wrong.
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

// y = x + p1, where p0 = |c| and p1 = -p0.
struct Chain {
  ModelBuilder b;
  int x, c, p0, p1, y;
  Chain() {
    x = b.input("x", DType::kFloat32, {4});
    c = b.constant<float>(DType::kFloat32, {4}, {1, -2, 3, -4});
    p0 = b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
    p1 = b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
    y = b.value(DType::kFloat32, {4});
    b.prepare(AbsAttrs{}, {c}, {p0});
    b.prepare(NegAttrs{}, {p0}, {p1});
    b.step(AddAttrs{}, {x, p1}, {y});
    b.output("y", y);
  }
  StepSpec& prepare(size_t i) { return b.program().prepare[i]; }
};

TEST(PrepareList, AChainOpens) {
  Chain m;
  EXPECT_TRUE(opened(m.b).ok());
}

TEST(PrepareList, StepsReadOnlyWhatIsThere) {
  Chain input;
  input.prepare(0).inputs = {input.x};
  EXPECT_REFUSED(input.b, "a prepare step reads a value that runs compute");
  Chain temporary;
  temporary.prepare(1).inputs = {temporary.y};
  EXPECT_REFUSED(temporary.b, "read before it is computed");
  Chain self;
  self.prepare(0).inputs = {self.p0};
  EXPECT_REFUSED(self.b, "read before it is computed");
  Chain circle;
  circle.prepare(0).inputs = {circle.p1};
  EXPECT_REFUSED(circle.b, "read before it is computed");
  Chain nowhere;
  nowhere.prepare(0).inputs = {100};
  EXPECT_REFUSED(nowhere.b, "an operand does not exist");
}

TEST(PrepareList, StepsStandInOrder) {
  Chain m;
  std::swap(m.prepare(0), m.prepare(1));
  EXPECT_REFUSED(m.b, "read before it is computed");
  Chain numbers;  // independent of each other, so only their numbers are wrong
  numbers.prepare(1).inputs = {numbers.c};
  std::swap(numbers.prepare(0), numbers.prepare(1));
  EXPECT_REFUSED(numbers.b, "not numbered as their steps");
}

TEST(PrepareList, EveryValueIsGivenOnceByItsList) {
  Chain twice;
  twice.prepare(1).outputs = {twice.p0};
  EXPECT_REFUSED(twice.b, "computed twice or by the wrong list");
  Chain missing;
  missing.b.program().prepare.pop_back();
  EXPECT_REFUSED(missing.b, "is read before it is computed");
  Chain none;
  none.b.program().prepare.clear();
  EXPECT_REFUSED(none.b, "is read before it is computed");
  Chain wrong;
  wrong.prepare(0).outputs = {wrong.y};
  EXPECT_REFUSED(wrong.b, "computed twice or by the wrong list");
  Chain main;
  main.b.step(AbsAttrs{}, {main.x}, {main.p1});
  EXPECT_REFUSED(main.b, "computed twice or by the wrong list");
  Chain empty;
  empty.prepare(0).outputs = {};
  EXPECT_FALSE(opened(empty.b).ok());
  Chain absent;
  absent.prepare(0).outputs = {-1};
  EXPECT_FALSE(opened(absent.b).ok());
}

TEST(PrepareList, TypesAndShapesAreTheOperations) {
  Chain shape;
  shape.b.program().values[static_cast<size_t>(shape.p0)].dims = {5};
  EXPECT_FALSE(opened(shape.b).ok());
  Chain type;
  type.b.program().values[static_cast<size_t>(type.p1)].dtype = DType::kInt32;
  EXPECT_FALSE(opened(type.b).ok());
  Chain packed;
  packed.b.program().values[static_cast<size_t>(packed.p0)].dtype = DType::kInt4;
  EXPECT_REFUSED(packed.b, "only constants can have a packed type");
  Chain unknown;
  unknown.prepare(0).op = 9999;
  EXPECT_REFUSED(unknown.b, "unknown to this build");
}

TEST(PrepareList, OnlyStepsReadPreparedValues) {
  Chain output;
  output.b.output("p", output.p1);
  EXPECT_REFUSED(output.b, "read by more than steps");
  Chain state;
  state.b.state(DType::kFloat32, {4}, -1, state.p1);
  EXPECT_REFUSED(state.b, "update does not fit");
  Chain branch;
  const int go = branch.b.input("go", DType::kBool, {}), r = branch.b.value(DType::kFloat32, {4});
  branch.b.step(IfAttrs{}, {go, branch.p1}, {r}, {1, 2});
  branch.b.output("r", r);
  for (const size_t body : {1, 2}) {
    branch.b.enter(body);
    const int in = branch.b.captured(DType::kFloat32, {4}), out = branch.b.value(DType::kFloat32, {4});
    branch.b.step(AbsAttrs{}, {in}, {out});
    branch.b.output("", out);
  }
  branch.b.enter(0);
  EXPECT_REFUSED(branch.b, "read by more than steps");
}

TEST(PrepareList, ChainsAreShort) {
  const auto long_chain = [](int steps, bool linked) {
    ModelBuilder b;
    const int x = b.input("x", DType::kFloat32, {4});
    const int c = b.constant<float>(DType::kFloat32, {4}, {1, -2, 3, -4});
    const int first = b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
    for (int i = 1; i < steps; ++i) b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
    const int y = b.value(DType::kFloat32, {4});
    for (int i = 0; i < steps; ++i) b.prepare(AbsAttrs{}, {linked && i > 0 ? first + i - 1 : c}, {first + i});
    b.step(AddAttrs{}, {x, first + steps - 1}, {y});
    b.output("y", y);
    return opened(b);
  };
  EXPECT_TRUE(long_chain(64, true).ok());
  EXPECT_EQ(long_chain(65, true).code, Code::kUnsupported);
  EXPECT_TRUE(long_chain(1000, false).ok());
}

}  // namespace
}  // namespace sinter::testing

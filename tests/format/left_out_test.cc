// Constants that the file lacks: only steps may read them, and sessions that would read one are refused
// before anything is.
#include "runtime/core/custom_definition.h"
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

using ::testing::HasSubstr;

// y = x + c, without c's bytes.
struct Lacking {
  ModelBuilder b;
  int x, c, y;
  Lacking() {
    x = b.input("x", DType::kFloat32, {4});
    c = b.constant<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
    y = b.value(DType::kFloat32, {4});
    b.step(AddAttrs{}, {x, c}, {y});
    b.output("y", y);
    b.leave_out(0);
  }
};

// What creating a session, and packed weights, of an opened file gives.
Status created(ModelBuilder& b, bool searches) {
  const AlignedBytes file = b.build();
  const OpenOptions open{.kernels = reference_kernels()};
  const AlignedBytes memory(Model::open_bytes(file.span(), open).value());
  const auto model = Model::open(file.span(), memory.span(), open);
  if (!model.ok()) return model.status();
  SessionOptions options;
  if (searches) options.packed_in_file = packed_in_file();
  const Status status = Session::requirements(*model, options).status();
  const AlignedBytes room(1 << 16);
  EXPECT_EQ(Session::create(*model, room.span(), options).status().code, status.code);
  return status;
}

TEST(LeftOut, AStepMayReadItButNoSessionDoes) {
  Lacking m;
  EXPECT_TRUE(opened(m.b).ok());
  for (const bool searches : {false, true}) {
    const Status status = created(m.b, searches);
    EXPECT_EQ(status.code, Code::kUnsupported);
    EXPECT_EQ(status.where, Where::kStep);
    EXPECT_EQ(status.index, 0);
    EXPECT_THAT(status.message, HasSubstr(searches ? "another machine, build, backend or plan"
                                                   : "set SessionOptions::packed_in_file"));
  }
}

TEST(LeftOut, PrepareStepsMayReadItButNoSessionRunsThem) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4});
  const int c = b.constant<float>(DType::kFloat32, {4}, {1, -2, 3, -4});
  const int p = b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared),
            q = b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
  const int y = b.value(DType::kFloat32, {4});
  b.prepare(AbsAttrs{}, {c}, {p});
  b.prepare(NegAttrs{}, {p}, {q});
  b.step(AddAttrs{}, {x, q}, {y});
  b.output("y", y);
  EXPECT_TRUE(created(b, true).ok());
  b.leave_out(0);
  EXPECT_TRUE(opened(b).ok());
  EXPECT_EQ(created(b, true).code, Code::kUnsupported);
}

TEST(LeftOut, HasNoPlace) {
  Lacking m;
  m.b.constants[0].offset = 64;
  EXPECT_REFUSED(m.b, "a constant that is left out has a place");
  Lacking beyond;  // any other number that is not a segment
  --beyond.b.constants[0].segment;
  EXPECT_REFUSED(beyond.b, "refers to a segment that does not exist");
  Lacking huge;  // its bytes are counted, though they are nowhere
  huge.b.constants[0].dims = {int64_t{1} << 62, 4};
  EXPECT_REFUSED(huge.b, "impossible type or shape");
  Lacking other;
  other.b.constants[0].dims = {5};
  EXPECT_REFUSED(other.b, "does not have its constant's type and shape");
}

constexpr char kByMore[] = "or a constant that is left out, is read by more than steps";

TEST(LeftOut, OutputsAreNotIt) {
  Lacking m;
  m.b.output("c", m.c);
  EXPECT_REFUSED(m.b, kByMore);
}

TEST(LeftOut, StatesDoNotBeginOrEndWithIt) {
  Lacking initial;
  initial.b.state(DType::kFloat32, {4}, 0, -1);
  EXPECT_REFUSED(initial.b, "a state's initial value is left out");
  Lacking update;
  const int32_t begin = update.b.add_constant<float>(DType::kFloat32, {4}, {0, 0, 0, 0});
  update.b.state(DType::kFloat32, {4}, begin, update.c);
  EXPECT_REFUSED(update.b, "a state's update does not fit it");
}

TEST(LeftOut, ItIsNotALength) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4});
  const int n = b.constant<int64_t>(DType::kInt64, {}, {2});
  const int y = b.value(DType::kFloat32, {4});
  b.step(AbsAttrs{}, {x}, {y});
  b.bound(y, 0, n);
  b.output("y", y);
  EXPECT_TRUE(opened(b).ok());
  b.leave_out(0);
  EXPECT_REFUSED(b, "or a constant that is left out");
}

// Neither as the condition nor captured, for whatever reads it in a body.
TEST(LeftOut, ControlFlowDoesNotReadIt) {
  for (const int lacking : {-1, 0, 1}) {
    ModelBuilder b;
    const int x = b.input("x", DType::kFloat32, {4});
    const int go = b.constant<uint8_t>(DType::kBool, {}, {1});
    const int c = b.constant<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
    const int y = b.value(DType::kFloat32, {4});
    b.step(IfAttrs{}, {go, x, c}, {y}, {1, 2});
    b.output("y", y);
    for (const size_t branch : {1, 2}) {
      b.enter(branch);
      const int p = b.captured(DType::kFloat32, {4}), w = b.captured(DType::kFloat32, {4});
      const int q = b.value(DType::kFloat32, {4});
      b.step(AddAttrs{}, {p, w}, {q});
      b.output("", q);
    }
    b.enter(0);
    if (lacking < 0) {
      EXPECT_TRUE(opened(b).ok());
      continue;
    }
    b.leave_out(static_cast<size_t>(lacking));
    EXPECT_REFUSED(b, kByMore);
  }
}

// Of a branch, which is a program as well: its own constant is its step's.
TEST(LeftOut, StepsOfBodiesAreRefusedByName) {
  ModelBuilder b;
  const int go = b.input("go", DType::kBool, {}), x = b.input("x", DType::kFloat32, {4});
  const int y = b.value(DType::kFloat32, {4});
  b.step(IfAttrs{}, {go, x}, {y}, {1, 2});
  b.output("y", y);
  for (const size_t branch : {1, 2}) {
    b.enter(branch);
    const int p = b.captured(DType::kFloat32, {4});
    const int w = b.constant<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
    const int q = b.value(DType::kFloat32, {4});
    b.step(AddAttrs{}, {p, w}, {q});
    b.output("", q);
  }
  b.enter(0);
  EXPECT_TRUE(created(b, false).ok());
  b.leave_out(1);
  const Status status = created(b, false);
  EXPECT_EQ(status.code, Code::kUnsupported);
  EXPECT_EQ(status.program, 2);
}

}  // namespace
}  // namespace sinter::testing

// Lengths that the caller gives: what the verifier demands of them, and what sessions make of them.
#include "tests/format/refusal.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kF32 = DType::kFloat32, kI64 = DType::kInt64;

// y = x + z for x and z of [2, 1..4] with the same length n; m = 2 * n, which shows what a run reads.
struct Sum {
  ModelBuilder b;
  int x = b.input("x", kF32, {2, 4}), z = b.input("z", kF32, {2, 4}), n = b.length("seq", 1, 4);
  int y = b.value(kF32, {2, 4}), m = b.value(kI64, {});
  Sum() {
    b.step(AddAttrs{}, {x, z}, {y});
    b.step(AddAttrs{}, {n, n}, {m});
    b.output("y", y);
    b.output("m", m);
    for (const int v : {x, z, y}) b.bound(v, 1, n);
  }
  LengthSpec& length() { return b.program().lengths[0]; }
  std::vector<fb::BoundedDim>& bounded(int v) {
    return b.program().values[static_cast<size_t>(v)].bounded_dims;
  }
  AlignedBytes build() { return b.build(); }
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::string text_of(const Status& status, const Model& model) {
  char text[300];
  model.format(status, text);
  return text;
}

TEST(Lengths, AreListedWithTheAxesThatHaveThem) {
  Sum s;
  const Running r(s.b);
  ASSERT_RUNNING(r);
  ASSERT_EQ(r.model.input_count(), 2u);
  EXPECT_EQ(r.model.input_range(0, 1).minimum, 1);
  EXPECT_EQ(r.model.input_range(0, 1).maximum, 4);
  EXPECT_EQ(r.model.input_range(1, 0).minimum, 2);
  const int64_t some[] = {2, 3}, none[] = {2, 0}, many[] = {2, 5}, other[] = {1, 3}, rank[] = {2};
  EXPECT_TRUE(r.model.takes({"x", some}, 0));
  for (const std::span<const int64_t> dims : {std::span<const int64_t>(none), {many}, {other}, {rank}})
    EXPECT_FALSE(r.model.takes({"x", dims}, 0));
}

TEST(Lengths, ARunReadsThoseThatWereGiven) {
  Sum s;
  Running r(s.b);
  ASSERT_RUNNING(r);
  Session& session = r.session;
  r.set<float>("x", {1, 2, 3, 4, 5, 6, 7, 8});
  r.set<float>("z", {1, 1, 1, 1, 1, 1, 1, 1});
  ASSERT_TRUE(session.run().ok());
  EXPECT_THAT(r.get<int64_t>("m"), ElementsAre(8));  // the maximum, until one is given
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, z = {10, 20, 30, 40, 50, 60};
  const int64_t three[] = {2, 3};
  for (int round = 0; round < 2; ++round) {  // a run may overwrite the memory of its inputs
    ASSERT_TRUE(session.write_input(0, bytes_of(x), three).ok());
    ASSERT_TRUE(session.write_input(1, bytes_of(z), three).ok());
    ASSERT_TRUE(session.run().ok());
    EXPECT_THAT(r.get<int64_t>("m"), ElementsAre(6));
    EXPECT_EQ(session.output_length(0, 1), 3);
    std::vector<float> y(6);
    ASSERT_TRUE(session.read_output(0, std::as_writable_bytes(std::span(y))).ok());
    EXPECT_THAT(y, ElementsAre(11, 22, 33, 44, 55, 66));
    EXPECT_EQ(r.get<float>("y")[4], 44);  // in a tensor of the maxima
  }
  EXPECT_EQ(session.input_length(0, 1), 3);
  EXPECT_EQ(session.input_length(0, 0), 2);
  EXPECT_EQ(session.input_length(0, 2), 0);
  std::vector<float> wrong(8);
  EXPECT_EQ(text_of(session.read_output(0, std::as_writable_bytes(std::span(wrong))), r.model),
            "output 0 'y': a tensor of this shape has 24 bytes, but 32 were given");
}

TEST(Lengths, AreRefusedWithTheInputTheAxisAndTheRange) {
  Sum s;
  Running r(s.b);
  ASSERT_RUNNING(r);
  const std::vector<float> x(16);
  const auto given = [&](std::vector<int64_t> dims) {
    const Status status = r.session.set_shape(0, dims);
    EXPECT_EQ(status.code, Code::kInvalidArgument);
    EXPECT_EQ(r.session.write_input(0, bytes_of(x), dims).code, Code::kInvalidArgument);
    EXPECT_EQ(r.session.input_length(0, 1), 4);  // nothing has changed
    return text_of(status, r.model);
  };
  EXPECT_EQ(given({2, 5}), "input 0 'x': its axis 1 has 1 to 4 entries, but the shape has 5");
  EXPECT_EQ(given({2, 0}), "input 0 'x': its axis 1 has 1 to 4 entries, but the shape has 0");
  EXPECT_EQ(given({2, -1}), "input 0 'x': its axis 1 has 1 to 4 entries, but the shape has -1");
  EXPECT_EQ(given({3, 4}), "input 0 'x': its axis 0 has 2 entries, but the shape has another number");
  EXPECT_EQ(given({2, 4, 1}), "input 0 'x': it has 2 axes, but the shape has 3");
  const int64_t three[] = {2, 3};
  EXPECT_EQ(text_of(r.session.write_input(0, bytes_of(std::vector<float>(8)), three), r.model),
            "input 0 'x': a tensor of this shape has 24 bytes, but 32 were given");
  EXPECT_EQ(r.session.set_shape(2, three).code, Code::kInvalidArgument);
}

// What was not given anew with another length is not read with the padding that it has by now.
TEST(Lengths, InputsOfOneLengthAreGivenTogether) {
  Sum s;
  Running r(s.b);
  ASSERT_RUNNING(r);
  const int64_t three[] = {2, 3}, two[] = {2, 2};
  ASSERT_TRUE(r.session.set_shape(0, three).ok());
  EXPECT_EQ(text_of(r.session.run(), r.model),
            "input 1 'z': its length is 4, but that of another input with the same dimension is 3; give both "
            "inputs anew");
  ASSERT_TRUE(r.session.set_shape(1, three).ok());
  EXPECT_TRUE(r.session.run().ok());
  ASSERT_TRUE(r.session.set_shape(1, two).ok());
  EXPECT_FALSE(r.session.run().ok());
}

TEST(Lengths, StayWhenASessionMoves) {
  Sum s;
  Running r(s.b);
  ASSERT_RUNNING(r);
  const int64_t three[] = {2, 3};
  ASSERT_TRUE(r.session.set_shape(0, three).ok() && r.session.set_shape(1, three).ok());
  AlignedBytes memory(r.needs.bytes);
  ASSERT_TRUE(r.session.move_to(memory.span(), {}).ok());
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<int64_t>("m"), ElementsAre(6));
  r.session.destroy();
}

TEST(Lengths, HostileOnesAreRefused) {
  EXPECT_TRUE(opened(Sum()).ok());
  Sum s;
  s.length().minimum = -1;
  EXPECT_REFUSED(s, "no axis, no name or an impossible range");
  s = Sum(), s.length().minimum = 5;
  EXPECT_REFUSED(s, "no axis, no name or an impossible range");
  s = Sum(), s.length().name = "";
  EXPECT_REFUSED(s, "no axis, no name or an impossible range");
  s = Sum(), s.b.length("idle", 1, 4);
  EXPECT_REFUSED(s, "no axis, no name or an impossible range");
  s = Sum(), s.length().maximum = 5;
  EXPECT_REFUSED(s, "does not have the maximum of its length");
  s = Sum(), s.bounded(s.x)[0] = {0, s.n};
  EXPECT_REFUSED(s, "does not have the maximum of its length");
  s = Sum(), s.bounded(s.x).emplace_back(1, s.n);
  EXPECT_REFUSED(s, "an axis of an input has two lengths");
  s = Sum(), s.bounded(s.x)[0] = {1, s.m};  // computed by the run
  EXPECT_REFUSED(s, "the length of an input is not given by the caller");
  s = Sum(), s.bounded(s.x)[0] = {7, s.n};
  EXPECT_REFUSED(s, "names an axis or a value that does not exist");
  s = Sum(), s.length().value = 1000;
  EXPECT_REFUSED(s, "the length of an input is not given by the caller");
  s = Sum(), s.b.program().lengths.push_back(s.length());
  EXPECT_REFUSED(s, "no axis, no name or an impossible range");
  s = Sum(), s.b.program().inputs.push_back({"n", static_cast<uint32_t>(s.n), {}});
  EXPECT_REFUSED(s, "listed twice or is not an input");
  s = Sum(), s.b.program().inputs[0].dims = {4, 2};
  EXPECT_REFUSED(s, "the public dims of a bounded input are not its own");
  s = Sum(), s.b.program().values[static_cast<size_t>(s.n)].kind = fb::ValueKind::State;
  EXPECT_REFUSED(s, "listed twice or is not an input");
  s = Sum(), s.b.place(s.n).alias_of = s.z;  // another input would be written over it
  EXPECT_FALSE(opened(s).ok());
  s = Sum(), s.b.place(s.n).none = true;
  EXPECT_REFUSED(s, "placement is missing");
  s = Sum(), s.b.program().lengths.clear();
  EXPECT_FALSE(opened(s).ok());
  s = Sum();
  for (int k = 0; k < 17; ++k)
    s.b.bound(s.b.input("k" + std::to_string(k), kF32, {4}), 0, s.b.length("l", 0, 4));
  EXPECT_REFUSED(s, "gives more than %a lengths");
}

TEST(Lengths, OfASubprogramAreRefused) {
  ModelBuilder b;
  const int c = b.input("c", DType::kBool, {}), x = b.input("x", kF32, {2}), y = b.value(kF32, {2});
  b.step(IfAttrs{}, {c, x}, {y}, {1, 2});
  b.output("y", y);
  for (const size_t branch : {1, 2}) {
    b.enter(branch);
    const int in = b.captured(kF32, {2}), out = b.value(kF32, {2});
    b.step(NegAttrs{}, {in}, {out});
    b.output("", out);
  }
  EXPECT_TRUE(opened(b).ok());
  b.length("seq", 1, 2);
  EXPECT_REFUSED(b, "the caller of a subprogram gives lengths");
}

TEST(Lengths, ProfilesHaveTheSame) {
  const auto two = [](int64_t minimum, const char* name) {
    ModelBuilder b;
    for (const size_t program : {0, 1}) {
      b.enter(program);
      const int x = b.input("x", kF32, {4}),
                n = b.length(program == 0 ? "seq" : name, program == 0 ? 1 : minimum, 4);
      const int y = b.value(kF32, {4});
      b.step(NegAttrs{}, {x}, {y});
      b.output("y", y);
      b.bound(x, 0, n);
    }
    b.enter(0);
    b.profiles = {{}, {}};
    b.profiles[1].name = "other", b.profiles[1].entries = {1};
    return b;
  };
  EXPECT_TRUE(opened(two(1, "seq")).ok());
  EXPECT_REFUSED(two(2, "seq"), "bounded inputs differ");
  EXPECT_REFUSED(two(1, "other"), "bounded inputs differ");
}

}  // namespace
}  // namespace sinter::testing

// States: what the verifier demands of their names and places, and what sessions make of them.
#include "tests/format/refusal.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kF32 = DType::kFloat32;

// u = s + x becomes s; y = -u.
struct Sum {
  ModelBuilder b;
  int x = b.input("x", kF32, {4}), s = b.state(kF32, {4}, -1, -1);
  int u = b.value(kF32, {4}), y = b.value(kF32, {4});
  Sum() {
    b.step(AddAttrs{}, {s, x}, {u});
    b.step(NegAttrs{}, {u}, {y});
    b.output("y", y);
    b.program().values[static_cast<size_t>(s)].update = u;
    b.name_state(s, "h_in", "h_out");
  }
  void in_place() { b.place(u).alias_of = s, b.place(u).first = 0; }
  AlignedBytes build() { return b.build(); }
};

TEST(States, AreListedAndKept) {
  for (const bool in_place : {false, true}) {
    Sum m;
    if (in_place) m.in_place();
    Running r(m.b);
    ASSERT_RUNNING(r);
    ASSERT_EQ(r.model.state_count(), 1u);
    const StateInfo info = r.model.state(0);
    EXPECT_STREQ(info.input, "h_in");
    EXPECT_STREQ(info.output, "h_out");
    EXPECT_EQ(info.dtype, kF32);
    EXPECT_THAT(info.dims, ElementsAre(4));
    EXPECT_TRUE(info.starts_at_zero);
    EXPECT_EQ(r.model.input_count(), 1u);
    EXPECT_EQ(r.model.output_count(), 1u);
    const TensorView state = r.session.state(0);
    EXPECT_FALSE(r.session.state(1).present());
    for (int round = 0; round < 2; ++round) {
      for (float k = 1; k < 4; ++k) {
        r.set<float>("x", {1, 2, 3, 4});
        ASSERT_TRUE(r.session.run().ok());
        EXPECT_THAT(r.get<float>("y"), ElementsAre(-k, -2 * k, -3 * k, -4 * k)) << in_place;
        EXPECT_EQ(state.as<float>()[3], 4 * k);
      }
      r.session.reset();
      EXPECT_EQ(state.as<float>()[3], 0);
    }
    state.as<float>()[0] = 100;  // a stream that was saved goes on
    r.set<float>("x", {1, 0, 0, 0});
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_EQ(r.get<float>("y")[0], -101);
  }
}

TEST(States, TheirRegionsAreCountedApart) {
  Sum m;
  m.b.regions = {0, 0};
  m.b.place(m.s).region = 1;
  Running apart(m.b);
  ASSERT_RUNNING(apart);
  EXPECT_EQ(apart.needs.state, 128u);
  EXPECT_EQ(apart.needs.arena, 3 * 64u + 64 + 128);
  Sum one;
  Running together(one.b);
  ASSERT_RUNNING(together);
  EXPECT_EQ(together.needs.state, together.needs.arena);
}

TEST(States, KeepTheirBytesFromOtherValues) {
  Sum m;
  m.b.place(m.s).last = 0;
  EXPECT_REFUSED(m, "cover the value's live range");
  Sum output;  // y where the old content is not needed any more, and the new one is copied to
  output.b.place(output.y).alias_of = output.s, output.b.place(output.y).first = 1;
  EXPECT_REFUSED(output, "an output would be overwritten when states are copied");
  Sum other;  // a value of another block there
  other.b.place(other.s).offset = 0, other.b.place(other.x).offset = 64;
  other.b.place(other.u).offset = 128, other.b.place(other.y).offset = 192;
  const int t = other.b.value(kF32, {4});
  other.b.step(NegAttrs{}, {other.y}, {t});
  other.b.place(t).offset = 0, other.b.place(t).first = other.b.place(t).last = 2;
  EXPECT_REFUSED(other, "share bytes");
}

TEST(States, AreOverwrittenAfterTheirLastReader) {
  Sum m;
  m.in_place();
  EXPECT_TRUE(opened(m).ok());
  m.b.program().steps[1].inputs = {m.s};  // y = -s, after u
  EXPECT_REFUSED(m, "overwritten");
  Sum kept;  // never replaced
  kept.in_place();
  kept.b.program().values[static_cast<size_t>(kept.s)].update = -1;
  EXPECT_REFUSED(kept, "overwritten");
}

TEST(States, OnlyTheFirstOperandOfAScatterIsOverwritten) {
  const auto scatter = [](bool updates) {
    ModelBuilder b;
    const int x = b.input("x", kF32, {4}), i = b.input("i", DType::kInt64, {4});
    const int s = b.state(kF32, {4}, -1, -1), u = b.value(kF32, {4});
    b.step(ScatterElementsAttrs{}, {updates ? x : s, i, updates ? s : x}, {u});
    b.program().values[static_cast<size_t>(s)].update = u;
    b.place(u).alias_of = s, b.place(u).first = 0;
    b.output("y", x);
    return b;
  };
  EXPECT_TRUE(opened(scatter(false)).ok());
  EXPECT_REFUSED(scatter(true), "overwritten");
}

// The state is operand 3 and result 1.
struct Recurrence {
  ModelBuilder b;
  int q = b.input("q", kF32, {1, 2, 2, 2}), s = b.state(kF32, {1, 2, 2, 2}, -1, -1);
  int y = b.value(kF32, {1, 2, 2, 2}), u = b.value(kF32, {1, 2, 2, 2});
  explicit Recurrence(bool keys_too = false, bool over_result = false) {
    b.step(LinearAttentionAttrs{}, {q, keys_too ? s : q, q, s}, {y, u});
    b.output("y", q);
    b.program().values[static_cast<size_t>(s)].update = u;
    b.place(over_result ? y : u).alias_of = s, b.place(over_result ? y : u).first = 0;
  }
  AlignedBytes build() { return b.build(); }
};

TEST(States, LinearAttentionWritesItsStateInPlace) {
  Recurrence m;
  EXPECT_TRUE(opened(m).ok());
  Recurrence keys(true);
  EXPECT_REFUSED(keys, "overwritten");
  Recurrence result(false, true);
  EXPECT_REFUSED(result, "overwritten");
  Recurrence moved;
  moved.b.place(moved.u).alias_offset = 4;
  EXPECT_REFUSED(moved, "overwritten");
}

// Keys and values in pairs of 4 bits: u = s with x in its first row; y = attention of q to u.
struct PairsCache {
  ModelBuilder b;
  int q, x = b.input("x", DType::kUint8, {1, 1, 1, 2}), s = b.state(DType::kUint8, {1, 1, 4, 2}, -1, -1);
  int u = b.value(DType::kUint8, {1, 1, 4, 2}), y;
  explicit PairsCache(int64_t query = 4, int64_t result = 4, std::vector<int64_t> scales = {}) {
    q = b.input("q", kF32, {1, 2, 1, query}), y = b.value(kF32, {1, 2, 1, result});
    b.step(CacheUpdateAttrs{2, 0}, {s, x}, {u});
    std::vector<int32_t> operands{q, u, u};
    if (!scales.empty())
      operands.insert(operands.end(), {-1, -1, -1, b.input("scales", kF32, std::move(scales))});
    b.step(AttentionAttrs{}, operands, {y});
    b.output("y", y);
    b.program().values[static_cast<size_t>(s)].update = u;
    b.place(u).alias_of = s, b.place(u).first = 0;
  }
  AlignedBytes build() { return b.build(); }
};

TEST(States, AreReadAsPairsOf4Bits) {
  PairsCache m;
  EXPECT_TRUE(opened(m).ok());
  PairsCache scaled(4, 4, {1, 1, 4});
  EXPECT_TRUE(opened(scaled).ok());
  PairsCache other(4, 4, {1, 1, 2});
  EXPECT_REFUSED(other, "not one for each row");
  // As many bytes as elements, and results of one element for each byte.
  PairsCache bytes(2);
  EXPECT_REFUSED(bytes, "a key has %a values, a query %b");
  PairsCache half(4, 2);
  EXPECT_FALSE(opened(half).ok());
  // A number of elements that is beyond any integer.
  PairsCache huge;
  huge.b.program().values[static_cast<size_t>(huge.s)].dims[3] = INT64_MAX / 4;
  huge.b.program().values[static_cast<size_t>(huge.u)].dims[3] = INT64_MAX / 4;
  EXPECT_FALSE(opened(huge).ok());
}

// The last four numbers: u = concat(s[1:], x).
struct Shift {
  ModelBuilder b;
  int x = b.input("x", kF32, {1}), s = b.state(kF32, {4}, -1, -1);
  int w = b.value(kF32, {3}), u = b.value(kF32, {4}), y = b.value(kF32, {4});
  explicit Shift(bool rotate = false) {
    b.step(SliceAttrs{{1}, {1}, {3}}, {s}, {w}).elided = true;
    b.place(w).alias_of = s, b.place(w).alias_offset = 4, b.place(w).first = 0;
    b.place(w).last = rotate ? 2 : 1;
    int last = x;
    if (rotate) {
      last = b.value(kF32, {1});
      b.step(SliceAttrs{{0}, {1}, {1}}, {s}, {last}).elided = true;
      b.place(last).alias_of = s, b.place(last).first = 1, b.place(last).last = 2;
    }
    b.step(ConcatAttrs{0}, {w, last}, {u}).in_order = true;
    b.place(u).alias_of = s, b.place(u).first = rotate ? 2 : 1;
    b.step(NegAttrs{}, {u}, {y});
    b.output("y", y);
    b.program().values[static_cast<size_t>(s)].update = u;
  }
  AlignedBytes build() { return b.build(); }
};

TEST(States, AreShiftedInPlace) {
  Shift m;
  Running r(m.b);
  ASSERT_RUNNING(r);
  for (float k = 1; k < 8; ++k) {
    r.set<float>("x", {k});
    ASSERT_TRUE(r.session.run().ok());
    EXPECT_THAT(r.get<float>("y"),
                ElementsAre(std::min(3 - k, 0.F), std::min(2 - k, 0.F), std::min(1 - k, 0.F), -k));
  }
  m.b.program().steps[1].in_order = false;
  EXPECT_REFUSED(m, "overwritten");
  EXPECT_REFUSED(Shift(true), "overwritten");
}

TEST(States, AreNamedInOrderAndBelongToEntries) {
  Sum m;
  m.b.program().states[0].value = static_cast<uint32_t>(m.x);
  EXPECT_REFUSED(m, "not a state");
  m.b.program().states[0].value = 77;
  EXPECT_REFUSED(m, "not a state");
  m.b.program().states[0] = {"", "h_out", static_cast<uint32_t>(m.s)};
  EXPECT_REFUSED(m, "a state has no name");
  m.b.program().states[0] = {"h_in", "", static_cast<uint32_t>(m.s)};
  EXPECT_REFUSED(m, "a state has no name");
  m.b.program().states = {{"h_in", "h_out", static_cast<uint32_t>(m.s)},
                          {"c_in", "c_out", static_cast<uint32_t>(m.s)}};
  EXPECT_REFUSED(m, "out of order");
}

TEST(States, AreTheSameInEveryProfile) {
  const auto with = [](const char* output, std::vector<int64_t> dims) {
    Sum m;
    ModelBuilder b = m.b;
    b.programs.push_back(b.programs[0]);
    b.programs[1].states[0].output = output;
    for (ValueSpec& v : b.programs[1].values) v.dims = dims;
    if (dims.size() > 1) b.programs[1].inputs[0].dims = b.programs[1].outputs[0].dims = {4};
    b.profiles.resize(2);
    b.profiles[1].name = "other", b.profiles[1].entries = {1};
    return b;
  };
  EXPECT_TRUE(opened(with("h_out", {4})).ok());
  EXPECT_REFUSED(with("g_out", {4}), "a profile's states differ");
  EXPECT_REFUSED(with("h_out", {2, 2}), "a profile's states differ");
}

}  // namespace
}  // namespace sinter::testing

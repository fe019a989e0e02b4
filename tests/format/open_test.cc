// Opening good files, and refusing every damaged one.
#include "runtime/model/lives.h"
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

struct Opened {
  AlignedBytes memory;
  Model model;
  Status status;
};

Opened open(const AlignedBytes& file, OpenOptions options = {.kernels = reference_kernels()}) {
  Opened out;
  const auto bytes = Model::open_bytes(file.span(), options);
  if (!bytes.ok()) return out.status = bytes.status(), std::move(out);
  out.memory = AlignedBytes(bytes.value());
  auto model = Model::open(file.span(), out.memory.span(), options);
  out.status = model.status();
  if (model.ok()) out.model = model.value();
  return out;
}

ModelBuilder small_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const int c = b.constant<float>(DType::kFloat32, {3}, {1, 2, 3});
  const int h = b.value(DType::kFloat32, {2, 3}), y = b.value(DType::kFloat32, {2, 3});
  b.step(AddAttrs{}, {x, c}, {h});
  ClampAttrs relu;
  relu.min = 0;
  b.step(relu, {h}, {y});
  b.output("y", y);
  return b;
}

::testing::Message explain(const Status& status) {
  char text[256];
  format_status(status, text);
  return ::testing::Message() << text;
}

TEST(Open, SmallModelListsItsPorts) {
  const AlignedBytes file = small_model().build();
  const Opened o = open(file);
  ASSERT_TRUE(o.status.ok()) << explain(o.status);
  EXPECT_EQ(o.model.program_count(), 1u);
  EXPECT_EQ(o.model.entry_count(), 1u);
  EXPECT_EQ(o.model.entry_program(), 0u);
  ASSERT_EQ(o.model.input_count(), 1u);
  EXPECT_STREQ(o.model.input(0).name, "x");
  EXPECT_EQ(o.model.input(0).dtype, DType::kFloat32);
  EXPECT_THAT(o.model.input(0).dims, ::testing::ElementsAre(2, 3));
  EXPECT_EQ(o.model.find_output("y"), 0);
  EXPECT_EQ(o.model.find_output("x"), -1);
  EXPECT_STREQ(o.model.step_op(1), "Clamp");
  EXPECT_STREQ(o.model.profile_name(0), "test");
  EXPECT_STREQ(o.model.profile_target(0), "portable");
}

TEST(Open, StableModeReadsInPlace) {
  const AlignedBytes file = small_model().build();
  const OpenOptions stable{.kernels = reference_kernels(), .stable = true};
  const OpenOptions copying{.kernels = reference_kernels()};
  EXPECT_LT(Model::open_bytes(file.span(), stable).value(), Model::open_bytes(file.span(), copying).value());
  EXPECT_TRUE(open(file, stable).status.ok());
}

TEST(Open, OneByteOfMemoryLessIsRefused) {
  const AlignedBytes file = small_model().build();
  const OpenOptions options{.kernels = reference_kernels()};
  const size_t bytes = Model::open_bytes(file.span(), options).value();
  AlignedBytes memory(bytes);
  const auto model = Model::open(file.span(), memory.span().first(bytes - 1), options);
  EXPECT_EQ(model.status().code, Code::kOutOfMemory);
  EXPECT_EQ(model.status().a, static_cast<int64_t>(bytes));
  EXPECT_EQ(model.status().b, static_cast<int64_t>(bytes) - 1);
}

TEST(Open, EveryFlippedBitIsNoticed) {
  const AlignedBytes file = small_model().build();
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      AlignedBytes bad = file.copy(file.size());
      bad[i] ^= static_cast<std::byte>(1 << bit);
      const Status status = open(bad).status;
      ASSERT_TRUE(status.code == Code::kCorrupt || status.code == Code::kUnsupported)
          << "byte " << i << " bit " << bit << ": " << explain(status);
    }
}

// With digests waived, the structure alone decides: anything may come out but a crash.
TEST(Open, FlippedBitsWithoutDigestsNeverCrash) {
  const AlignedBytes file = small_model().build();
  format::Header h;
  std::memcpy(&h, file.data(), sizeof(h));
  int refused = 0;
  for (size_t i = h.flatbuffer_offset; i < h.flatbuffer_offset + h.flatbuffer_bytes; ++i)
    for (const int mask : {0x01, 0x04, 0x20, 0x80, 0xff}) {
      AlignedBytes bad = file.copy(file.size());
      bad[i] ^= static_cast<std::byte>(mask);
      refused += !open(bad, {.kernels = reference_kernels(), .check_digests = false}).status.ok();
    }
  EXPECT_GT(refused, 1000);
}

TEST(Open, EveryTruncationIsNoticed) {
  const AlignedBytes file = small_model().build();
  for (size_t n = 0; n < file.size(); ++n) EXPECT_EQ(open(file.copy(n)).status.code, Code::kCorrupt) << n;
}

TEST(Open, ExtensionsAreNoticed) {
  const AlignedBytes file = small_model().build();
  for (const size_t more : {1, 63, 64, 65, 4096})
    EXPECT_EQ(open(file.copy(file.size() + more)).status.code, Code::kCorrupt) << more;
}

TEST(Open, UnalignedFileIsRefused) {
  const AlignedBytes file = small_model().build();
  AlignedBytes shifted(file.size() + 8), memory(1 << 20);
  std::memcpy(shifted.data() + 8, file.data(), file.size());
  EXPECT_EQ(
      Model::open(shifted.span().subspan(8), memory.span(), {.kernels = reference_kernels()}).status().code,
      Code::kInvalidArgument);
}

TEST(Open, MissingKernelIsRefused) {
  EXPECT_EQ(open(small_model().build(), {}).status.code, Code::kUnsupported);
}

// ---- structure

TEST(Verify, NewerOperationVersion) {
  ModelBuilder b = small_model();
  b.program().steps[0].version = 2;
  EXPECT_REFUSED(b, "newer than this build");
}
TEST(Verify, UnknownOperation) {
  ModelBuilder b = small_model();
  b.program().steps[0].op = 9999;
  EXPECT_REFUSED(b, "unknown to this build");
}
TEST(Verify, OperandOutOfRange) {
  ModelBuilder b = small_model();
  b.program().steps[0].inputs[1] = 99;
  EXPECT_REFUSED(b, "operand does not exist");
  b.program().steps[0].inputs[1] = -2;
  EXPECT_REFUSED(b, "operand does not exist");
}
TEST(Verify, ReadBeforeGiven) {
  ModelBuilder b = small_model();
  std::swap(b.program().steps[0], b.program().steps[1]);
  EXPECT_REFUSED(b, "before it is computed");
}
TEST(Verify, GivenTwice) {
  ModelBuilder b = small_model();
  b.program().steps[1].outputs[0] = b.program().steps[0].outputs[0];
  EXPECT_REFUSED(b, "computed twice");
}
TEST(Verify, NeverGiven) {
  ModelBuilder b = small_model();
  b.value(DType::kFloat32, {1});
  EXPECT_REFUSED(b, "no step computes the value");
}
// Its kernel would write to nowhere.
TEST(Verify, NothingWanted) {
  for (const bool last : {false, true}) {
    ModelBuilder b = small_model();
    std::vector<StepSpec>& steps = b.program().steps;
    for (int32_t& v : (last ? steps.back() : steps.front()).outputs) v = -1;
    EXPECT_REFUSED(b, "none of the operation's outputs is used");
  }
}
TEST(Verify, WrongShapeOfResult) {
  ModelBuilder b = small_model();
  b.program().values[2].dims = {3, 2};
  EXPECT_REFUSED(b, "does not have the type or shape");
}

// Concat takes any number, a step does not.
TEST(Verify, OperandsOfAStep) {
  for (const size_t inputs : {detail::kMaxOperands - 1, detail::kMaxOperands}) {
    ModelBuilder b;
    const int x = b.input("x", DType::kFloat32, {2, 3});
    const int y = b.value(DType::kFloat32, {2 * static_cast<int64_t>(inputs), 3});
    b.step(ConcatAttrs{0}, std::vector<int>(inputs, x), {y});
    b.output("y", y);
    if (inputs < detail::kMaxOperands)
      EXPECT_TRUE(opened(b).ok());
    else
      EXPECT_REFUSED(b, "more than %a operands");
  }
}
TEST(Verify, AttributeListsTooShortOrLong) {
  ModelBuilder b = small_model();
  b.program().steps[1].attrs.floats.pop_back();
  EXPECT_REFUSED(b, "attribute lists");
  b = small_model();
  b.program().steps[1].attrs.ints.push_back(3);
  EXPECT_REFUSED(b, "attribute lists");
}
TEST(Verify, HugeDims) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{int64_t{1} << 62, 4},
                                           {0, int64_t{1} << 40, int64_t{1} << 40},
                                           {-1},
                                           {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    ModelBuilder b = small_model();
    b.program().values[0].dims = dims;
    EXPECT_REFUSED(b, "impossible type or shape");
  }
}
TEST(Verify, ScaleOfAFloatOrNotPositive) {
  for (const float scale : {0.5f, -0.5f, INFINITY, NAN}) {
    ModelBuilder b = small_model();
    b.program().values[0].scale = scale;
    EXPECT_REFUSED(b, "impossible scale");
  }
}
TEST(Verify, UnknownDtype) {
  for (const int dtype : {0, 24, 200}) {
    ModelBuilder b = small_model();
    b.program().values[0].dtype = static_cast<DType>(dtype);
    EXPECT_REFUSED(b, "impossible type or shape");
  }
}
TEST(Verify, ConstantBeyondItsSegment) {
  ModelBuilder b = small_model();
  b.constants[0].offset = 64;
  EXPECT_REFUSED(b, "extends beyond its segment");
  b = small_model();
  b.constants[0].offset = 4;
  EXPECT_REFUSED(b, "extends beyond its segment");
  b = small_model();
  b.extra_weights = 0;
  b.weights.resize(64);
  EXPECT_REFUSED(b, "extends beyond its segment");
}
TEST(Verify, TooLittleScratchStated) {
  ModelBuilder b = small_model();
  b.scratch_less = 1;
  EXPECT_REFUSED(b, "too little scratch");
}
TEST(Verify, NamelessInput) {
  ModelBuilder b = small_model();
  b.program().inputs[0].name = "";
  EXPECT_REFUSED(b, "no name");
}
TEST(Verify, SubprogramsOfAPlainStep) {
  ModelBuilder b = small_model();
  b.program().steps[0].subprograms = {0};
  EXPECT_REFUSED(b, "subprograms");
}

// ---- plan

TEST(Plan, OverlapIsFound) {
  ModelBuilder b = small_model();  // x, c, h, y; x and h are both live in step 0
  b.place(0).offset = 0;
  b.place(2).offset = 64;
  b.place(3).offset = 128;
  EXPECT_TRUE(open(b.build()).status.ok());
  b.place(2).offset = 0;
  EXPECT_REFUSED(b, "share bytes");
  // y may take x's place: x dies in step 0, y is born in step 1.
  b.place(2).offset = 64;
  b.place(3).offset = 0;
  EXPECT_REFUSED(b, "share bytes");  // as long as the plan claims that x lives to the end
  b.place(0).last = 0;
  b.place(3).first = 1;
  EXPECT_TRUE(open(b.build()).status.ok());
}
// Without bytes and live ranges in the file, the verifier takes those of the values.
TEST(Plan, PlacementsWithoutBytesAndLiveRanges) {
  ModelBuilder b = small_model();
  b.bare_placements = true;
  b.place(0).offset = b.place(3).offset = 0, b.place(2).offset = 64;  // x dies in step 0, y is born in step 1
  const AlignedBytes file = b.build();
  const Opened o = open(file);
  ASSERT_TRUE(o.status.ok()) << explain(o.status);
  const fb::Model& root = *o.model.state()->root;
  const fb::Program& program = *root.programs()->Get(0);
  const fb::ProgramPlan& plan = *root.profiles()->Get(0)->plans()->Get(0);
  EXPECT_EQ(detail::placed_bytes(program, *detail::find_placement(plan, 2)), 24u);
  std::vector<detail::Life> lives(4);
  detail::find_lives(program, lives);
  const auto life = [&](uint32_t v) {
    const detail::Life at = detail::stated_life(*detail::find_placement(plan, v), lives[v]);
    return std::pair(at.first, at.last);
  };
  EXPECT_EQ(life(0), std::pair(-1, 0));
  EXPECT_EQ(life(2), std::pair(0, 1));
  EXPECT_EQ(life(3), std::pair(1, 2));
  b.place(2).offset = 0;
  EXPECT_REFUSED(b, "share bytes");
  b.place(2).offset = 64, b.place(2).bytes = 20;
  EXPECT_REFUSED(b, "a placement has");
  b.place(2).bytes = -1, b.place(0).last = 1;  // states more than x needs
  EXPECT_REFUSED(b, "share bytes");
  b = small_model();
  b.bare_placements = true;
  b.region_bytes = 64 * 2 + 64;
  EXPECT_REFUSED(b, "a placement extends beyond its region");
}
TEST(Plan, LifeMustCoverUses) {
  ModelBuilder b = small_model();
  b.place(2).first = 1;
  EXPECT_REFUSED(b, "cover the value's live range");
  b.place(2).first = 0;
  b.place(2).last = 0;
  EXPECT_REFUSED(b, "cover the value's live range");
  b.place(2).last = 1;
  EXPECT_TRUE(open(b.build()).status.ok());
  b.place(3).last = 1;  // outputs live to the end: 2
  EXPECT_REFUSED(b, "cover the value's live range");
}
TEST(Plan, InPlaceNeedsAnAliasAndADyingOperand) {
  ModelBuilder b = small_model();
  b.place(2).first = 0, b.place(2).last = 1, b.place(3).first = 1;
  b.place(2).offset = 128;
  b.place(3).offset = 128;
  EXPECT_REFUSED(b, "share bytes");
  b.place(3).alias_of = 2;
  EXPECT_TRUE(open(b.build()).status.ok()) << explain(open(b.build()).status);
  b.place(3).offset = 132;  // half over the operand
  EXPECT_REFUSED(b, "overwritten");
  b.place(3).offset = 128;
  b.output("h", 2);  // now h lives on
  b.place(2).last = 2;
  EXPECT_REFUSED(b, "overwritten");
}
TEST(Plan, AliasesMustLeadSomewhere) {
  ModelBuilder b = small_model();
  b.place(2).alias_of = 3, b.place(3).alias_of = 2;
  b.place(2).offset = 128, b.place(3).offset = 128;
  EXPECT_REFUSED(b, "cycle");
  b.place(3).alias_of = 1;
  EXPECT_REFUSED(b, "alias of a value that does not exist");
}
TEST(Plan, PlacementsStayInsideRegions) {
  ModelBuilder b = small_model();
  b.region_bytes = 64 * 3 + 64;
  EXPECT_TRUE(open(b.build()).status.ok());
  b.region_bytes = 64 * 3;
  EXPECT_REFUSED(b, "a placement extends beyond its region");
  b = small_model();
  b.region_bytes = 64 * 3 + 1;
  EXPECT_REFUSED(b, "leave no padding or are not a multiple of");
  b = small_model();
  b.place(0).offset = 32;
  EXPECT_REFUSED(b, "not aligned");
  b = small_model();
  b.place(3).none = true;
  EXPECT_REFUSED(b, "missing, superfluous");
}
TEST(Plan, StridesAreChecked) {
  for (const std::vector<int64_t>& strides :
       {std::vector<int64_t>{12, 0}, {8, 4}, {-12, 4}, {14, 4}, {12}, {int64_t{1} << 62, 4}}) {
    ModelBuilder b = small_model();
    b.place(2).strides = strides;
    b.place(2).bytes = 24;
    EXPECT_REFUSED(b, "strides");
  }
}
TEST(Plan, WorkspaceIsALivingThing) {
  ModelBuilder b = small_model();
  b.program().steps[0].workspace = 128;
  EXPECT_TRUE(open(b.build()).status.ok());
  b.place(0).offset = 0, b.place(2).offset = 64, b.place(3).offset = 128;
  EXPECT_TRUE(open(b.build()).status.ok());
  b.region_bytes = 192 + 128;  // the workspace would end where padding begins, plus one line
  EXPECT_REFUSED(b, "a workspace extends beyond its region");
}
TEST(Plan, CandidatesAreBackends) {
  ModelBuilder b = small_model();
  b.program().steps[0].candidates = {0};
  EXPECT_REFUSED(b, "not a backend");
  b.backends = {"simd"};
  EXPECT_TRUE(open(b.build()).status.ok());
}
TEST(Plan, OnlyMovesCanBeElided) {
  ModelBuilder b = small_model();
  b.program().steps[1].elided = true;
  b.place(3).alias_of = 2;
  EXPECT_REFUSED(b, "cannot be elided");
}

// Many values, each taking over the previous one's place, and one clash among them.
TEST(Plan, LongChains) {
  constexpr int kSteps = 3000;
  ModelBuilder b;
  ClampAttrs relu;
  relu.min = 0;
  int last = b.input("x", DType::kFloat32, {64});
  b.place(last).offset = 0, b.place(last).last = 0;
  for (int s = 0; s < kSteps; ++s) {
    const int y = b.value(DType::kFloat32, {64});
    b.place(y).first = s, b.place(y).last = s + 1;
    b.place(y).offset = 256 * ((s + 1) % 2);
    b.step(relu, {last}, {y});
    last = y;
  }
  b.output("y", last);
  EXPECT_TRUE(open(b.build()).status.ok()) << explain(open(b.build()).status);
  b.place(1500).offset = 192;
  EXPECT_REFUSED(b, "share bytes");
}

}  // namespace
}  // namespace sinter::testing

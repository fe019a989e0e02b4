// Prepared values in a session: computed with the model's kernels, kept where kernels read them, gone where
// they are packed; and no byte more or less than stated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;

// Mul by a constant that it copies when it is prepared, or reads in every run.
class PackingBackend final : public Backend {
 public:
  bool packs = true;
  int prepared = 0;
  const char* name() const override { return "packing"; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int, StepNeeds* needs) override {
    SINTER_RETURN_UNLESS(call.op == Op::kMul && call.in(1).constant, unsupported("only Mul by a constant"));
    if (packs) *needs = {static_cast<size_t>(call.in(1).dense_bytes()), 0, 0b10};
    return ok_status();
  }
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override {
    ++prepared;
    SINTER_RETURN_UNLESS(call.in(1).data != nullptr, error(Code::kInternal, "no data"));
    if (packs) {
      const auto bytes = static_cast<size_t>(call.in(1).dense_bytes());
      step->state = with.prepared.allocate(bytes, 64);
      std::memcpy(step->state, call.in(1).data, bytes);
    }
    step->run = [](void* state, const OpCall& c, RunContext&) {
      SINTER_RETURN_UNLESS(state != nullptr || c.in(1).data != nullptr, error(Code::kInternal, "no data"));
      const float* w = state != nullptr ? static_cast<const float*>(state) : c.in(1).as<const float>();
      for (int64_t i = 0; i < c.out(0).size(); ++i) c.out(0).as<float>()[i] = c.in(0).as<float>()[i] * w[i];
      return ok_status();
    };
    return ok_status();
  }
  void release(PreparedStep&) override {}
};

constexpr int64_t kSize = 4096;  // elements: 16 KiB as float32

// x * w0 * w1 ..., each weight widened from int8 by Cast and then negated.
struct Products {
  ModelBuilder b;
  std::vector<int> weights;
  PackingBackend backend;
  Backend* const backends[1] = {&backend};

  explicit Products(int count, bool same = false) {
    b.backends = {"packing"};
    int v = b.input("x", DType::kFloat32, {kSize});
    std::vector<int> stored;
    for (int k = 0; k < count; ++k) {
      std::vector<int8_t> items(kSize);
      for (size_t i = 0; i < items.size(); ++i)
        items[i] = static_cast<int8_t>((i + static_cast<size_t>(k)) % 5 + 1);
      stored.push_back(b.constant<int8_t>(DType::kInt8, {kSize}, items));
    }
    for (int k = 0; k < 2 * count; ++k) b.value(DType::kFloat32, {kSize}, fb::ValueKind::Prepared);
    for (int k = 0; k < count; ++k) {
      const int wide = stored.back() + 1 + 2 * k;
      b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {stored[static_cast<size_t>(k)]},
                {wide});
      b.prepare(NegAttrs{}, {wide}, {wide + 1});
      weights.push_back(wide + 1);
    }
    for (int k = 0; k < count; ++k) {
      const int y = b.value(DType::kFloat32, {kSize});
      b.step(MulAttrs{}, {v, weights[same ? 0 : static_cast<size_t>(k)]}, {y}).candidates = {0};
      v = y;
    }
    b.output("y", v);
  }
  static float factor(int k, int64_t i) { return -static_cast<float>((i + k) % 5 + 1); }
};

void expect_products(Running& r, int count, bool same = false) {
  ASSERT_RUNNING(r);
  std::vector<float> x(kSize);
  std::iota(x.begin(), x.end(), 1.0f);
  for (int round = 0; round < 2; ++round) {
    r.set<float>("x", x);
    ASSERT_TRUE(r.session.run().ok());
    const std::vector<float> y = r.get<float>("y");
    for (int64_t i = 0; i < kSize; ++i) {
      float want = x[static_cast<size_t>(i)];
      for (int k = 0; k < count; ++k) want *= Products::factor(same ? 0 : k, i);
      ASSERT_EQ(y[static_cast<size_t>(i)], want) << i;
    }
  }
}

TEST(Prepared, PackedWeightsDoNotStay) {
  Products m(3);
  Running r(m.b, {.backends = m.backends});
  expect_products(r, 3);
  EXPECT_EQ(m.backend.prepared, 3);
  // Two buffers of one weight (widened, negated) fit the arena or what later weights will take.
  const size_t packed = 3 * kSize * sizeof(float);
  EXPECT_GE(r.needs.prepared, packed);
  EXPECT_LE(r.needs.prepared, packed + 2 * (kSize * sizeof(float) + 64));
}

TEST(Prepared, WeightsThatAreReadStay) {
  Products m(3);
  m.backend.packs = false;
  Running r(m.b, {.backends = m.backends});
  expect_products(r, 3);
  EXPECT_GE(r.needs.prepared, 3 * kSize * sizeof(float));
  Products reference(3);
  Running plain(reference.b);
  expect_products(plain, 3);
  EXPECT_EQ(plain.needs.prepared, r.needs.prepared);
}

TEST(Prepared, AWeightOfSeveralStepsIsKeptOnce) {
  Products m(3, true);
  m.backend.packs = false;
  Running r(m.b, {.backends = m.backends});
  expect_products(r, 3, true);
  EXPECT_LT(r.needs.prepared, 3 * kSize * sizeof(float));
}

TEST(Prepared, PackedHereAndReadThere) {
  for (const bool packed_first : {true, false}) {
    Products m(2, true);
    (packed_first ? m.b.program().steps[1] : m.b.program().steps[0]).candidates = {};
    Running r(m.b, {.backends = m.backends});
    expect_products(r, 2, true);
    EXPECT_EQ(m.backend.prepared, 1);
    EXPECT_STREQ(r.session.step_backend(packed_first ? 1 : 0), "reference");
  }
}

TEST(Prepared, NoByteMoreNoByteLess) {
  for (const bool packs : {true, false}) {
    Products m(4);
    m.backend.packs = packs;
    Running r(m.b, {.backends = m.backends});
    ASSERT_RUNNING(r);
    EXPECT_EQ(Session::create(r.model, AlignedBytes(r.needs.bytes).span().first(r.needs.bytes - 1),
                              {.backends = m.backends})
                  .status()
                  .code,
              Code::kOutOfMemory);
    AlignedBytes memory(r.needs.bytes + 4096);
    for (std::byte& b : memory.span()) b = std::byte{0xA5};
    auto session = Session::create(r.model, memory.span().first(r.needs.bytes), {.backends = m.backends});
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE(session.value().run().ok());
    for (const std::byte b : memory.span().subspan(r.needs.bytes)) ASSERT_EQ(b, std::byte{0xA5});
  }
}

TEST(Prepared, NarrowTypesAreWidenedExactly) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4});
  const int q = b.constant<uint8_t>(DType::kInt4, {4}, {0x71, 0xF8});              // 1, 7, -8, -1
  const int scale = b.constant<uint16_t>(DType::kFloat16, {2}, {0x3800, 0x4000});  // 0.5, 2
  const int h = b.constant<uint16_t>(DType::kBFloat16, {4}, {0x3F80, 0xC000, 0x0001, 0x7F7F});
  const int e = b.constant<uint8_t>(DType::kFloat8E4M3FN, {4}, {0x38, 0x01, 0xFE, 0x80});
  const int first = b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
  for (int i = 1; i < 3; ++i) b.value(DType::kFloat32, {4}, fb::ValueKind::Prepared);
  b.prepare(DequantizeAttrs{0, 2, static_cast<int64_t>(DType::kFloat32)}, {q, scale}, {first});
  b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {h}, {first + 1});
  b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {e}, {first + 2});
  for (int i = 0; i < 3; ++i) {
    const int y = b.value(DType::kFloat32, {4});
    b.step(MulAttrs{}, {x, first + i}, {y});
    b.output("y" + std::to_string(i), y);
  }
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {1, 1, 1, 1});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y0"), ElementsAre(0.5f, 3.5f, -16, -2));
  EXPECT_THAT(r.get<float>("y1"), ElementsAre(1, -2, 9.1835496e-41f, 3.3895314e38f));
  EXPECT_THAT(r.get<float>("y2"), ElementsAre(1, 0x1p-9f, -448, 0));
}

TEST(Prepared, HugeValuesAreRefused) {
  ModelBuilder b;
  const int64_t n = (PTRDIFF_MAX / 64) / 1024 * 1024;
  const int x = b.input("x", DType::kFloat32, {1});
  const int f = b.constant<float>(DType::kFloat32, {1}, {1});
  const int first = b.value(DType::kFloat32, {n}, fb::ValueKind::Prepared);
  for (int i = 1; i < 40; ++i) b.value(DType::kFloat32, {n}, fb::ValueKind::Prepared);
  const int one = b.value(DType::kFloat32, {1}), y = b.value(DType::kFloat32, {1});
  BroadcastAttrs broadcast;
  broadcast.dims = {n};
  // Twenty live at once.
  for (int i = 0; i < 20; ++i) b.prepare(broadcast, {f}, {first + i});
  for (int i = 20; i < 40; ++i) b.prepare(AddAttrs{}, {first + i - 20, first + i - 1}, {first + i});
  SliceAttrs slice;
  slice.starts = {0}, slice.steps = {1}, slice.sizes = {1};
  b.step(slice, {first + 39}, {one});
  b.step(AddAttrs{}, {x, one}, {y});
  b.output("y", y);
  Running r(b);
  EXPECT_EQ(r.status.code, Code::kOutOfMemory) << r.why();
}

// Beyond what the walk follows one by one, values stay.
TEST(Prepared, ManySteps) {
  ModelBuilder b;
  const int n = 5000;
  int v = b.input("x", DType::kFloat32, {1});
  const int c = b.constant<int8_t>(DType::kInt8, {1}, {1});
  const int first = b.value(DType::kFloat32, {1}, fb::ValueKind::Prepared);
  for (int i = 1; i < n; ++i) b.value(DType::kFloat32, {1}, fb::ValueKind::Prepared);
  for (int i = 0; i < n; ++i)
    b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c}, {first + i});
  for (const int i : {0, 4095, 4096, n - 1, 0}) {
    const int y = b.value(DType::kFloat32, {1});
    b.step(AddAttrs{}, {v, first + i}, {y});
    v = y;
  }
  b.output("y", v);
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {0});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(5));
}

}  // namespace
}  // namespace sinter::testing

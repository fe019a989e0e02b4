// Packed constants: which steps and sessions share them, how much memory they take, and where they are not
// shared because they differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/format/packed_file.h"
#include "tests/unit/packing_backend.h"

namespace sinter::testing {
namespace {

float result_of(Running& r) {
  r.set<float>("x", std::vector<float>(kLength, 1.0f));
  EXPECT_TRUE(r.session.run().ok());
  return r.get<float>("y")[kLength - 1];
}

TEST(Packed, StepsThatReadTheSameShareIt) {
  ModelBuilder b = chain(2, {0, 1, 0, 0, 1});
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(backend.packed, 2);
  EXPECT_EQ(backend.prepared, 5);
  EXPECT_EQ(r.needs.packed, 2 * kWeights);
  EXPECT_EQ(r.needs.prepared, r.needs.packed + 5 * 64);
  EXPECT_EQ(result_of(r), 2 * 3 * 2 * 2 * 3);
}

TEST(Packed, WhatIsPackedInAnotherWayIsNotShared) {
  ModelBuilder b;
  b.backends = {"packing", "other"};
  const int x = b.input("x", DType::kFloat32, {kLength}),
            wide = b.input("wide", DType::kFloat32, {2, kLength});
  const int w = b.constant<float>(DType::kFloat32, {kLength}, std::vector<float>(kLength, 3.0f));
  const int y = b.value(DType::kFloat32, {kLength}), z = b.value(DType::kFloat32, {kLength}),
            wider = b.value(DType::kFloat32, {2, kLength});
  b.step(MulAttrs{}, {x, w}, {y}).candidates = {0};
  b.step(MulAttrs{}, {y, w}, {z}).candidates = {1};
  b.step(MulAttrs{}, {wide, w}, {wider}).candidates = {0};
  b.output("y", z);
  b.output("wider", wider);
  CountingBackend backend, other("other");
  other.negates = true;
  backend.other_from = 2 * kLength;
  Backend* const backends[] = {&backend, &other};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(backend.packed, 2);
  EXPECT_EQ(other.packed, 1);
  EXPECT_EQ(r.needs.packed, 3 * kWeights);
  EXPECT_EQ(result_of(r), -9);
}

// Branches, and the program around them.
TEST(Packed, BodiesShareWithTheirOwner) {
  ModelBuilder b;
  b.backends = {"packing"};
  const int32_t c = b.add_constant<float>(DType::kFloat32, {kLength}, std::vector<float>(kLength, 5.0f));
  const auto weight = [&] {
    const int v = b.value(DType::kFloat32, {kLength}, fb::ValueKind::Constant);
    b.program().values.back().constant = c;
    return v;
  };
  const int go = b.input("go", DType::kBool, {}), x = b.input("x", DType::kFloat32, {kLength});
  const int h = b.value(DType::kFloat32, {kLength}), y = b.value(DType::kFloat32, {kLength}),
            z = b.value(DType::kFloat32, {kLength});
  const int w = weight();
  b.step(IfAttrs{}, {go, x, w}, {h}, {1, 2});
  b.step(MulAttrs{}, {h, w}, {y}).candidates = {0};
  b.step(IfAttrs{}, {go, y, w}, {z}, {3, 4});
  b.output("y", z);
  for (const size_t branch : {1, 2, 3, 4}) {
    b.enter(branch);
    const int p = b.captured(DType::kFloat32, {kLength}), captured = b.captured(DType::kFloat32, {kLength});
    const int own = branch % 2 == 0 ? weight() : captured;
    const int q = b.value(DType::kFloat32, {kLength});
    b.step(MulAttrs{}, {p, own}, {q}).candidates = {0};
    b.output("", q);
  }
  b.enter(0);
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(backend.packed, 1);
  EXPECT_EQ(backend.prepared, 5);
  for (const uint8_t go_there : {0, 1}) {
    r.set<uint8_t>("go", {go_there});
    EXPECT_EQ(result_of(r), 125);
  }
}

// As many questions as steps, however often steps repeat others.
TEST(Packed, SearchesInLinearTime) {
  constexpr int kWeightsOfStripe = 500, kStripes = 6;
  std::vector<int> steps;
  for (int stripe = 0; stripe < kStripes; ++stripe)
    for (int k = 0; k < kWeightsOfStripe; ++k) steps.push_back(k);
  ModelBuilder b = chain(kWeightsOfStripe, steps);
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(backend.packed, kWeightsOfStripe);
  // requirements() and create() each measure a step once, and again where it is compared.
  EXPECT_LE(backend.measured, 4 * static_cast<int>(steps.size()) + kWeightsOfStripe);
}

TEST(Packed, MoreConstantsThanBits) {
  std::vector<int> steps(5000);
  std::iota(steps.begin(), steps.end(), 0);
  steps.insert(steps.end(), {0, 4500, 4999, 404});
  ModelBuilder b = chain(5000, steps);
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  EXPECT_EQ(backend.packed, 5000);
}

TEST(Packed, SessionsShareABlock) {
  ModelBuilder b = chain(3, {0, 1, 0, 2});
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  SessionOptions options{.backends = backends};
  Running alone(b, options);
  ASSERT_RUNNING(alone);
  backend.packed = 0;
  Block block(alone.model, options);
  ASSERT_TRUE(block.packed.ok());
  EXPECT_EQ(block.packed->count(), 3u);
  EXPECT_EQ(block.packed->bytes(), block.memory.size());
  EXPECT_EQ(backend.packed, 3);
  const AlignedBytes before = block.memory.copy(block.memory.size());
  options.packed_weights = &*block.packed;
  for (int i = 0; i < 2; ++i) {
    auto needs = Session::requirements(alone.model, options);
    ASSERT_TRUE(needs.ok());
    EXPECT_EQ(needs->packed, 0u);
    EXPECT_EQ(needs->prepared, alone.needs.prepared - 3 * kWeights);
    EXPECT_LT(needs->control, alone.needs.control);
    const AlignedBytes memory(needs->bytes);
    auto session = Session::create(alone.model, memory.span(), options);
    ASSERT_TRUE(session.ok());
    std::fill_n(session->input(0).as<float>(), kLength, 1.0f);
    ASSERT_TRUE(session->run().ok());
    EXPECT_EQ(session->output(0).as<float>()[0], 2 * 3 * 2 * 4);
    session->destroy();
  }
  EXPECT_EQ(backend.packed, 3);
  EXPECT_EQ(std::memcmp(before.data(), block.memory.data(), before.size()), 0);
}

TEST(Packed, EverySizeTooSmallIsRefused) {
  ModelBuilder b = chain(3, {0, 1, 0, 2});
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  const SessionOptions options{.backends = backends};
  Running alone(b, options);
  ASSERT_RUNNING(alone);
  const size_t need = PackedWeights::requirements(alone.model, options).value().bytes;
  for (size_t n = 0; n < need; ++n) {
    AlignedBytes memory(need);
    const Status status = PackedWeights::create(alone.model, memory.span().first(n), options).status();
    ASSERT_EQ(status.code, Code::kOutOfMemory) << n;
    EXPECT_EQ(status.a, static_cast<int64_t>(need));
    EXPECT_EQ(status.b, static_cast<int64_t>(n));
  }
  AlignedBytes memory(need + 64);
  EXPECT_EQ(PackedWeights::create(alone.model, memory.span().subspan(1), options).status().code,
            Code::kInvalidArgument);
  EXPECT_EQ(PackedWeights::create(Model(), memory.span(), options).status().code, Code::kInvalidArgument);
}

// Without a backend that packs there is nothing but a header.
TEST(Packed, NothingToPack) {
  ModelBuilder b = chain(2, {0, 1});
  Running r(b);
  ASSERT_RUNNING(r);
  Block block(r.model, {});
  ASSERT_TRUE(block.packed.ok());
  EXPECT_EQ(block.packed->count(), 0u);
  EXPECT_LE(block.packed->bytes(), 64u);
}

TEST(Packed, WhatDoesNotAgreeIsPackedAgain) {
  ModelBuilder b = chain(2, {0, 1});
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  SessionOptions options{.backends = backends};
  Running alone(b, options);
  ASSERT_RUNNING(alone);
  Block block(alone.model, options);
  ASSERT_TRUE(block.packed.ok());
  options.packed_weights = &*block.packed;
  // Packed in another way by now, as after another cap on the instruction set.
  backend.packed = 0;
  backend.negates = true;
  {
    Running copy(b);
    auto needs = Session::requirements(alone.model, options);
    ASSERT_TRUE(needs.ok());
    EXPECT_EQ(needs->packed, 2 * kWeights);
    const AlignedBytes memory(needs->bytes);
    auto session = Session::create(alone.model, memory.span(), options);
    ASSERT_TRUE(session.ok());
    EXPECT_EQ(backend.packed, 2);
    std::fill_n(session->input(0).as<float>(), kLength, 1.0f);
    ASSERT_TRUE(session->run().ok());
    EXPECT_EQ(session->output(0).as<float>()[0], 6);
  }
  // Another backend of the same constants.
  options.backend = "reference";
  EXPECT_EQ(Session::requirements(alone.model, options).value().packed, 0u);
  options.backend = nullptr;
  // The same file, opened again: its constants are elsewhere.
  Running other(b, options);
  EXPECT_EQ(other.status.code, Code::kInvalidArgument);
  EXPECT_EQ(other.why(), "the packed weights belong to another model; pack them with the same Model");
  const PackedWeights empty;
  options.packed_weights = &empty;
  EXPECT_EQ(Session::requirements(alone.model, options).status().code, Code::kInvalidArgument);
}

// Weights that are widened for it: once, in scratch memory.
TEST(Packed, WidenedWeightsArePackedOnce) {
  ModelBuilder b;
  b.backends = {"packing"};
  int v = b.input("x", DType::kFloat32, {kLength});
  const int narrow = b.constant<int8_t>(DType::kInt8, {kLength}, std::vector<int8_t>(kLength, 3));
  const int wide = b.value(DType::kFloat32, {kLength}, fb::ValueKind::Prepared);
  b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {narrow}, {wide});
  for (int k = 0; k < 4; ++k) {
    const int y = b.value(DType::kFloat32, {kLength});
    b.step(MulAttrs{}, {v, wide}, {y}).candidates = {0};
    v = y;
  }
  b.output("y", v);
  CountingBackend backend;
  Backend* const backends[] = {&backend};
  SessionOptions options{.backends = backends};
  Running r(b, options);
  ASSERT_RUNNING(r);
  EXPECT_EQ(backend.packed, 1);
  EXPECT_EQ(r.needs.packed, kWeights);
  EXPECT_EQ(result_of(r), 81);
  Block block(r.model, options);
  ASSERT_TRUE(block.packed.ok());
  EXPECT_EQ(backend.packed, 2);
  options.packed_weights = &*block.packed;
  auto needs = Session::requirements(r.model, options);
  ASSERT_TRUE(needs.ok());
  EXPECT_EQ(needs->packed, 0u);
  EXPECT_EQ(needs->prepared, 4 * 64u);
  const AlignedBytes memory(needs->bytes);
  auto session = Session::create(r.model, memory.span(), options);
  ASSERT_TRUE(session.ok());
  std::fill_n(session->input(0).as<float>(), kLength, 1.0f);
  ASSERT_TRUE(session->run().ok());
  EXPECT_EQ(session->output(0).as<float>()[0], 81);
  EXPECT_EQ(backend.packed, 2);
}

// Five numbers in the 64 bytes of a packing, whose rest the backend leaves as it was.
TEST(Packed, FilesDoNotHoldWhatWasInMemory) {
  ModelBuilder b;
  b.backends = {"packing"};
  const int x = b.input("x", DType::kFloat32, {5}), y = b.value(DType::kFloat32, {5});
  const int w = b.constant<float>(DType::kFloat32, {5}, {1, 2, 3, 4, 5});
  b.step(MulAttrs{}, {x, w}, {y}).candidates = {0};
  b.output("y", y);
  CountingBackend backend;
  backend.layouts = 77;
  Backend* const backends[] = {&backend};
  const SessionOptions options{.backends = backends};
  Running r(b, options);
  ASSERT_RUNNING(r);
  std::vector<std::byte> segments[2];
  for (const int before : {0, 1}) {
    const AlignedBytes memory(PackedWeights::requirements(r.model, options)->bytes);
    std::memset(memory.data(), before == 0 ? 0x55 : 0xaa, memory.size());
    segments[before] = packed_segment(PackedWeights::create(r.model, memory.span(), options).value());
  }
  EXPECT_EQ(segments[0], segments[1]);
}

}  // namespace
}  // namespace sinter::testing

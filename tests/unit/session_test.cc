// Sessions: memory to the byte, results, state, bindings, observers, no allocation.
#include "sinter/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/format/sample_models.h"
#include "tests/memory/watch.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;

TEST(Session, Computes) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.session.input_count(), 1u);
  EXPECT_FALSE(r.session.input("z").present());
  EXPECT_FALSE(r.session.output(7).present());
  r.set<float>("x", {-5, 1, 0, -1, -2, -4});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(0, 3, 3, 0, 0, 0));
  EXPECT_STREQ(r.session.step_backend(0), "reference");
}

TEST(Session, InPlaceAndReuse) {
  ModelBuilder b = add_relu();  // h over x, y over h
  b.place(0).offset = 0, b.place(0).last = 0;
  b.place(2).offset = 0, b.place(2).alias_of = 0, b.place(2).first = 0, b.place(2).last = 1;
  b.place(3).offset = 0, b.place(3).alias_of = 2, b.place(3).first = 1;
  Running r(b);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.needs.arena, 128u);
  r.set<float>("x", {-5, 1, 0, -1, -2, -4});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(0, 3, 3, 0, 0, 0));
}

TEST(Session, OneByteLessIsRefusedWithTheNumber) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.needs.bytes, r.needs.control + r.needs.arena + r.needs.prepared);
  r.session.destroy();
  for (size_t n = 0; n < r.needs.bytes; ++n) {
    const auto created = Session::create(r.model, r.memory.span().first(n), {});
    ASSERT_EQ(created.status().code, Code::kOutOfMemory) << n;
    ASSERT_EQ(created.status().a, static_cast<int64_t>(r.needs.bytes));
    ASSERT_EQ(created.status().b, static_cast<int64_t>(n));
  }
  EXPECT_TRUE(Session::create(r.model, r.memory.span(), {}).ok());
}

TEST(Session, TouchesNothingOutsideItsMemory) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  r.session.destroy();
  AlignedBytes big(r.needs.bytes + 4096);
  std::memset(big.data(), 0xa5, big.size());
  auto created = Session::create(r.model, big.span(), {});
  ASSERT_TRUE(created.ok());
  ASSERT_TRUE(created->run().ok());
  created->destroy();
  for (size_t i = r.needs.bytes; i < big.size(); ++i) ASSERT_EQ(big[i], std::byte{0xa5}) << i;
}

TEST(Session, WrongOptionsAreRefused) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  SessionOptions options;
  options.profile = "nosuch";
  EXPECT_EQ(Session::requirements(r.model, options).status().code, Code::kInvalidArgument);
  options = {};
  options.backend = "nosuch";
  EXPECT_EQ(Session::requirements(r.model, options).status().code, Code::kInvalidArgument);
  options = {};
  options.entry = 1;
  EXPECT_EQ(Session::requirements(r.model, options).status().code, Code::kInvalidArgument);
  options = {};
  options.backend = "reference";
  EXPECT_TRUE(Session::requirements(r.model, options).ok());
  AlignedBytes memory(r.needs.bytes + 8);
  EXPECT_EQ(Session::create(r.model, memory.span().subspan(8), {}).status().code, Code::kInvalidArgument);
}

// Each shape set takes its own regions, not those of the largest.
TEST(Session, EntriesTakeTheirOwnRegions) {
  ModelBuilder b = shapes_model();
  Running small(b), large(b, {.entry = 1});
  ASSERT_RUNNING(small);
  ASSERT_RUNNING(large);
  EXPECT_EQ(small.needs.arena, 64u + 64 + 64);
  EXPECT_EQ(large.needs.arena, 2 * 4096 * sizeof(float) + 64);
  EXPECT_LT(small.needs.bytes, large.needs.arena);
  small.set<float>("x", {-1, 2, -3, 4});
  large.set<float>("x", std::vector<float>(4096, -5));
  ASSERT_TRUE(small.session.run().ok() && large.session.run().ok());
  EXPECT_EQ(small.get<float>("y"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(large.get<float>("y"), std::vector<float>(4096, 5));
}

TEST(Session, ProfilesAreChosenByNameOrByTheMachine) {
  ModelBuilder b = profiles_model();
  Running here(b), named(b, {.profile = "branches"});
  ASSERT_RUNNING(here);
  ASSERT_RUNNING(named);
  EXPECT_EQ(here.session.profile(), 1u);
  EXPECT_EQ(here.model.default_profile(), 1u);
  EXPECT_EQ(here.model.entry_program(), 3u);
  EXPECT_EQ(here.model.step_count(), 3u);
  EXPECT_EQ(named.session.profile(), 0u);
  EXPECT_STREQ(named.session.step_backend(0), "session") << "an If";
  for (Running* r : {&here, &named}) {
    EXPECT_EQ(r->model.profile_count(), 2u);
    r->set<float>("x", {5, 6, 7, 8});
    for (const bool sum : {true, false}) {
      *r->session.input("choice").as<bool>() = sum;
      r->set<float>("x", {5, 6, 7, 8});
      ASSERT_TRUE(r->session.run().ok());
      EXPECT_EQ(r->get<float>("y"),
                sum ? (std::vector<float>{6, 8, 10, 12}) : (std::vector<float>{5, 12, 21, 32}));
    }
  }
  // Where none fits, the first.
  b.profiles[1].architecture = b.profiles[0].architecture;
  Running nowhere(b);
  ASSERT_RUNNING(nowhere);
  EXPECT_EQ(nowhere.session.profile(), 0u);
}

TEST(Session, RunsWithoutAllocating) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  const int64_t before = test::allocation_count();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(test::allocation_count(), before);
  // Neither does creating one.
  r.session.destroy();
  const int64_t counted = test::allocation_count();
  auto again = Session::create(r.model, r.memory.span(), {});
  const int64_t after = test::allocation_count();
  EXPECT_TRUE(again.ok());
  EXPECT_EQ(after, counted);
}

// ---- observers

TEST(Session, ObserverSeesEveryStep) {
  ModelBuilder b = add_relu();
  Running r(b);
  ASSERT_RUNNING(r);
  struct Seen {
    std::vector<uint32_t> before, after;
    float first = 0;
  } seen;
  StepObserver observer;
  observer.context = &seen;
  observer.before = [](void* c, const StepInfo& info) { static_cast<Seen*>(c)->before.push_back(info.step); };
  observer.after = [](void* c, const StepInfo& info, const OpCall& call) {
    static_cast<Seen*>(c)->after.push_back(info.step);
    if (info.step == 0) static_cast<Seen*>(c)->first = call.out(0).as<float>()[0];
  };
  r.session.set_observer(&observer);
  r.set<float>("x", {-5, 1, 0, -1, -2, -4});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(seen.before, ElementsAre(0, 1));
  EXPECT_THAT(seen.after, ElementsAre(0, 1));
  EXPECT_EQ(seen.first, -4);
  r.session.set_observer(nullptr);
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(seen.after.size(), 2u);
}

// ---- bindings

TEST(Session, BoundBuffersAreUsed) {
  ModelBuilder b = add_relu();
  AlignedBytes in(128), out(128);
  const Binding bindings[] = {{"x", in.span()}, {"y", out.span()}};
  SessionOptions options;
  options.bindings = bindings;
  Running r(b, options);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.session.input(0u).data, in.data());
  const float x[] = {-5, 1, 0, -1, -2, -4};
  std::memcpy(in.data(), x, sizeof(x));
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(reinterpret_cast<float*>(out.data())[1], 3);
}

TEST(Session, ImpossibleBindingsAreRefused) {
  ModelBuilder b = add_relu();
  AlignedBytes in(128);
  const auto refused = [&](const char* name, std::span<std::byte> buffer) {
    const Binding bindings[] = {{name, buffer}};
    SessionOptions options;
    options.bindings = bindings;
    return Running(b, options).status.code;
  };
  EXPECT_EQ(refused("nosuch", in.span()), Code::kInvalidArgument);
  EXPECT_EQ(refused("x", in.span().first(23)), Code::kInvalidArgument);
  EXPECT_EQ(refused("x", in.span().subspan(4)), Code::kInvalidArgument);
  EXPECT_EQ(refused("x", in.span()), Code::kOk);
  // The plan writes over x.
  b.place(0).last = 0;
  b.place(2).alias_of = 0, b.place(2).first = 0;
  EXPECT_EQ(refused("x", in.span()), Code::kUnsupported);
}

// Where the parts of y = relu(x + c) begin in one block of memory.
struct Layout {
  size_t x, y, session, model;
};
// A code and its text: a status refers to names in the block, which is gone by then.
std::pair<Code, std::string> created_in(const Layout& at, std::vector<float>* result = nullptr) {
  const auto answer = [](const Status& status) {
    char text[256];
    format_status(status, text);
    return std::pair(status.code, std::string(text));
  };
  ModelBuilder b = add_relu();
  const AlignedBytes file = b.build();
  AlignedBytes block(1 << 16);
  const auto part = [&](size_t from) { return block.span().subspan(from); };
  auto model = Model::open(file.span(), part(at.model), {.kernels = reference_kernels()});
  if (!model.ok()) return answer(model.status());
  const Binding bindings[] = {{"x", part(at.x).first(24)}, {"y", part(at.y).first(24)}};
  auto session = Session::create(*model, part(at.session), {.bindings = bindings});
  if (!session.ok() || result == nullptr) return answer(session.status());
  const float x[] = {-5, 1, 0, -1, -2, -4};
  std::memcpy(session->input("x").data, x, sizeof(x));
  const Status ran = session->run();
  const auto* y = session->output("y").as<float>();
  result->assign(y, y + 6);
  return answer(ran);
}

TEST(Session, BuffersMayTouchButNotOverlap) {
  constexpr size_t kModel = 0, kSession = 1 << 15, kFree = (1 << 15) - 256;
  std::vector<float> y;
  // y begins within the bytes that may be read behind x, and x within those behind y.
  for (const auto& [at_x, at_y] : {std::pair{kFree, kFree + 64}, {kFree + 64, kFree}}) {
    ASSERT_EQ(created_in({at_x, at_y, kSession, kModel}, &y).first, Code::kOk);
    EXPECT_THAT(y, ElementsAre(0, 3, 3, 0, 0, 0));
  }
  // The session begins within those behind y.
  ASSERT_EQ(created_in({kFree, kSession - 64, kSession, kModel}, &y).first, Code::kOk);
  EXPECT_THAT(y, ElementsAre(0, 3, 3, 0, 0, 0));
  const auto refused = [](const Layout& at, const char* with) {
    const auto [code, text] = created_in(at);
    EXPECT_EQ(code, Code::kInvalidArgument) << text;
    EXPECT_THAT(text, ::testing::HasSubstr(with));
  };
  refused({kFree, kFree, kSession, kModel}, "bound to 'y' and 'x' overlap");
  refused({kSession, kFree, kSession, kModel}, "bound to 'x' overlaps the session's memory");
  refused({kFree, kSession + 64, kSession, kModel}, "bound to 'y' overlaps the session's memory");
  refused({kFree, kModel, kSession, kModel}, "bound to 'y' overlaps the model's memory");
  refused({kFree, kFree + 64, kModel, kModel}, "session's memory overlaps the model's memory");
}

TEST(Session, BindingsToTheFileAndTwiceAreRefused) {
  ModelBuilder b = add_relu();
  b.output("again", b.program().outputs[0].value);
  const AlignedBytes file = b.build();
  const OpenOptions open{.kernels = reference_kernels()};
  AlignedBytes memory(Model::open_bytes(file.span(), open).value()), in(128), out(128), more(128);
  auto model = Model::open(file.span(), memory.span(), open);
  ASSERT_TRUE(model.ok());
  const auto refused = [&](std::vector<Binding> bindings, const char* with) {
    const auto needs = Session::requirements(*model, {.bindings = bindings});
    char text[256];
    format_status(needs.status(), text);
    EXPECT_EQ(needs.status().code, Code::kInvalidArgument) << text;
    EXPECT_THAT(text, ::testing::HasSubstr(with));
  };
  const std::span<std::byte> in_file(const_cast<std::byte*>(file.span().data()), 128);
  refused({{"y", in_file}}, "its file");
  refused({{"x", in.span()}, {"x", out.span()}}, "bound twice");
  refused({{"y", out.span()}, {"again", more.span()}}, "bound twice");
  refused({{"nosuch", in.span()}}, "'nosuch'");
  refused({{nullptr, in.span()}}, "not an input or output");
  const Binding apart[] = {{"x", in.span()}, {"y", out.span()}};
  EXPECT_TRUE(Session::requirements(*model, {.bindings = apart}).ok());
}

// h has 32 bytes, of which y is the first 16 and gives the block its name.
TEST(Session, WhatDoesNotFitIntoABoundBufferIsNotPutThere) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {8});
  const int h = b.value(DType::kFloat32, {8}), y = b.value(DType::kFloat32, {4});
  b.step(relu(), {x}, {h});
  SliceAttrs cut;
  cut.starts.push(0), cut.steps.push(1), cut.sizes.push(4);
  b.step(cut, {h}, {y}).elided = true;
  b.output("y", y);
  b.place(y).offset = 64, b.place(y).first = 0;
  b.place(h).offset = 64, b.place(h).alias_of = y;
  AlignedBytes out(64);
  const Binding bindings[] = {{"y", out.span().first(16)}};
  Running planned(b);
  ASSERT_RUNNING(planned);
  Running bound(b, {.bindings = bindings});
  EXPECT_EQ(bound.status.code, Code::kUnsupported) << bound.why();
}

// ---- state

TEST(Session, StateLivesAcrossRunsUntilReset) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2});
  const int32_t start = b.add_constant<float>(DType::kFloat32, {2}, {10, 20});
  const int s = b.state(DType::kFloat32, {2}, start, 2);
  const int y = b.value(DType::kFloat32, {2});
  b.step(AddAttrs{}, {s, x}, {y});
  b.output("y", y);
  Running r(b);
  ASSERT_RUNNING(r);
  r.set<float>("x", {1, 2});
  ASSERT_TRUE(r.session.run().ok());
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(12, 24));
  r.session.reset();
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(11, 22));
}

// y = state + x; state' = y. The state is in a region of its own, as converters plan it.
ModelBuilder running_sum(int64_t n) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {n});
  const int s = b.state(DType::kFloat32, {n}, -1, 2);
  b.regions = {0, 0};
  b.place(s).region = 1;
  const int y = b.value(DType::kFloat32, {n});
  b.step(AddAttrs{}, {s, x}, {y});
  b.output("y", y);
  return b;
}

TEST(Session, SessionsShareAnArena) {
  ModelBuilder small = running_sum(2), large = running_sum(300);
  Running alone(small), most(large);
  ASSERT_RUNNING(alone);
  ASSERT_RUNNING(most);
  EXPECT_EQ(alone.needs.shareable + alone.needs.state, alone.needs.arena);
  EXPECT_GE(alone.needs.state, 2 * sizeof(float));
  EXPECT_GE(most.needs.shareable, 2 * 300 * sizeof(float));
  AlignedBytes values(most.needs.shareable);
  SharedArena arena(values.span());
  Running a(small, {.arena = &arena}), b(large, {.arena = &arena});
  ASSERT_RUNNING(a);
  ASSERT_RUNNING(b);
  EXPECT_EQ(a.needs.bytes, alone.needs.bytes - alone.needs.shareable);
  EXPECT_EQ(b.needs.bytes, most.needs.bytes - most.needs.shareable);
  for (int run = 1; run <= 3; ++run) {
    a.set<float>("x", {1, 2});
    ASSERT_TRUE(a.session.run().ok());
    EXPECT_THAT(a.get<float>("y"), ElementsAre(run, 2 * run));
    b.set<float>("x", std::vector<float>(300, 3));
    ASSERT_TRUE(b.session.run().ok());
    EXPECT_EQ(b.get<float>("y"), std::vector<float>(300, 3.F * static_cast<float>(run)));
  }
  ASSERT_TRUE(arena.take());
  EXPECT_THAT(a.session.run().message, ::testing::HasSubstr("shares the arena"));
  EXPECT_EQ(Session::create(a.model, alone.memory.span(), {.arena = &arena}).status().code,
            Code::kInvalidArgument);
  arena.give_back();
  EXPECT_TRUE(a.session.run().ok());
}

TEST(Session, AnArenaThatCannotBeSharedIsRefused) {
  ModelBuilder b = running_sum(300);
  Running r(b);
  ASSERT_RUNNING(r);
  AlignedBytes values(r.needs.shareable + 64);
  const auto with = [&](std::span<std::byte> memory) {
    SharedArena arena(memory);
    return Session::create(r.model, r.memory.span(), {.arena = &arena}).status();
  };
  const Status small = with(values.span().first(r.needs.shareable - 1));
  EXPECT_EQ(small.code, Code::kOutOfMemory);
  EXPECT_EQ(small.a, static_cast<int64_t>(r.needs.shareable));
  EXPECT_EQ(with(values.span().subspan(8)).code, Code::kInvalidArgument);
  EXPECT_EQ(with(r.memory.span()).code, Code::kInvalidArgument) << "the session's own memory";
  EXPECT_EQ(with(r.model_memory.span()).ok(), false) << "the model's";
  EXPECT_TRUE(with(values.span()).ok());
}

TEST(Session, MovesWithItsState) {
  ModelBuilder b = running_sum(2);
  Running r(b);
  ASSERT_RUNNING(r);
  int64_t steps = 0;
  const StepObserver observer{&steps, [](void* n, const StepInfo&) { ++*static_cast<int64_t*>(n); }, nullptr};
  r.session.set_observer(&observer);
  r.set<float>("x", {1, 2});
  ASSERT_TRUE(r.session.run().ok());
  AlignedBytes next(r.needs.bytes);
  EXPECT_EQ(r.session.move_to(r.memory.span(), {}).code, Code::kInvalidArgument) << "the same memory";
  EXPECT_EQ(r.session.move_to(next.span().first(64), {}).code, Code::kOutOfMemory);
  ASSERT_TRUE(r.session.move_to(next.span(), {}).ok());
  std::memset(r.memory.data(), 0xff, r.memory.size());
  r.set<float>("x", {1, 2});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(2, 4));
  EXPECT_EQ(steps, 2);
  r.session.destroy();
  EXPECT_EQ(r.session.move_to(next.span(), {}).code, Code::kInvalidArgument);
}

TEST(Session, PreparedValuesAreComputedOnce) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {3});
  const int c = b.constant<float>(DType::kFloat32, {3}, {-1, 2, -3});
  const int p = b.value(DType::kFloat32, {3}, fb::ValueKind::Prepared);
  const int y = b.value(DType::kFloat32, {3});
  b.prepare(relu(), {c}, {p});
  b.step(AddAttrs{}, {x, p}, {y});
  b.output("y", y);
  Running r(b);
  ASSERT_RUNNING(r);
  EXPECT_GT(r.needs.prepared, 0u);
  r.set<float>("x", {1, 1, 1});
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_THAT(r.get<float>("y"), ElementsAre(1, 3, 1));
}
}  // namespace
}  // namespace sinter::testing

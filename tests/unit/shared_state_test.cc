// State that sessions of a model's shape sets share: one goes on where another stopped, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/running.h"
#include "tests/unit/two_entries_with_state.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The sessions of both entries, with one state and one arena between them.
struct Both {
  AlignedBytes file, model_memory, kept, values, memory[2];
  Model model;
  SharedState state;
  SharedArena arena;
  Session session[2];
  Status status;

  explicit Both(const AlignedBytes& bytes)
      : file(bytes.copy(bytes.size())), kept(4096), values(4096), state(kept.span()), arena(values.span()) {
    const OpenOptions open{.kernels = reference_kernels()};
    model_memory = AlignedBytes(Model::open_bytes(file.span(), open).value());
    const auto opened = Model::open(file.span(), model_memory.span(), open);
    if (status = opened.status(); !status.ok()) return;
    model = *opened;
    for (uint32_t e = 0; e < 2; ++e) create(e);
  }
  ~Both() { session[0].destroy(), session[1].destroy(); }

  void create(uint32_t e) {
    const SessionOptions options{.entry = e, .arena = &arena, .state = &state};
    const auto needs = Session::requirements(model, options);
    if (status = needs.status(); !status.ok()) return;
    memory[e] = AlignedBytes(needs->bytes);
    auto created = Session::create(model, memory[e].span(), options);
    if (status = created.status(); status.ok()) session[e] = std::move(*created);
  }
  std::vector<float> run(uint32_t e, const std::vector<float>& x) {
    std::memcpy(session[e].input(0).data, x.data(), x.size() * sizeof(float));
    if (status = session[e].run(); !status.ok()) return {};
    const TensorView y = session[e].output(0);
    return {y.as<float>(), y.as<float>() + y.size()};
  }
};

TEST(SharedState, OneSessionGoesOnWithTheOthers) {
  Both both(two_entries_with_state().build());
  ASSERT_TRUE(both.status.ok()) << both.status.message;
  EXPECT_THAT(both.run(0, {3, 4}), ElementsAre(4, 6)) << "begins with 1, 2";
  EXPECT_THAT(both.run(1, {0, 0, 10, 10}), ElementsAre(8, 12, 18, 22)) << "twice the state";
  EXPECT_THAT(both.run(0, {1, 1}), ElementsAre(9, 13));
  // The first session of a stream sets it to its initial values; another one goes on.
  both.session[1].destroy();
  both.create(1);
  ASSERT_TRUE(both.status.ok()) << both.status.message;
  EXPECT_THAT(both.run(1, {0, 0, 0, 0}), ElementsAre(18, 26, 18, 26));
  EXPECT_THAT(
      std::vector<float>(both.session[0].state(0).as<float>(), both.session[0].state(0).as<float>() + 2),
      ElementsAre(18, 26));
  both.session[1].reset();
  EXPECT_THAT(both.run(0, {0, 0}), ElementsAre(1, 2));
}

TEST(SharedState, TakesItsPlaceInTheSessionsMemory) {
  Both both(two_entries_with_state().build());
  ASSERT_TRUE(both.status.ok()) << both.status.message;
  for (uint32_t e = 0; e < 2; ++e) {
    const auto alone = Session::requirements(both.model, {.entry = e});
    SharedState state({});
    const auto shared = Session::requirements(both.model, {.entry = e, .state = &state});
    ASSERT_TRUE(alone.ok() && shared.ok());
    EXPECT_GT(alone->state, 0u);
    EXPECT_EQ(shared->bytes, alone->bytes - alone->state);
    EXPECT_EQ(shared->state, alone->state);
  }
}

TEST(SharedState, MovesWithItsSession) {
  AlignedBytes next(4096), last(4096);  // outlive the sessions
  Both both(two_entries_with_state().build());
  ASSERT_TRUE(both.status.ok()) << both.status.message;
  both.run(0, {3, 4});
  // The state stays where it is.
  const SessionOptions same{.entry = 0, .arena = &both.arena, .state = &both.state};
  ASSERT_TRUE(both.session[0].move_to(next.span(), same).ok());
  EXPECT_THAT(both.run(0, {1, 1}), ElementsAre(5, 7));
  EXPECT_THAT(both.run(1, {0, 0, 0, 0}), ElementsAre(10, 14, 10, 14));
  // And a session that takes a copy of it along leaves the others alone.
  ASSERT_TRUE(both.session[0].move_to(last.span(), {.entry = 0}).ok());
  EXPECT_THAT(both.run(0, {0, 0}), ElementsAre(10, 14));
  EXPECT_THAT(both.run(1, {0, 0, 0, 0}), ElementsAre(20, 28, 20, 28));
  EXPECT_THAT(both.run(0, {0, 0}), ElementsAre(10, 14));
}

TEST(SharedState, RefusesWhatDoesNotFit) {
  Both both(two_entries_with_state().build()), other(two_entries_with_state().build());
  ASSERT_TRUE(both.status.ok() && other.status.ok()) << both.status.message;
  AlignedBytes memory(4096), kept(4096);
  const auto with = [&](SharedState& state, SharedArena* arena = nullptr) {
    return Session::create(both.model, memory.span(), {.arena = arena, .state = &state}).status();
  };
  const size_t bytes = Session::requirements(both.model, {})->state;
  SharedState small(kept.span().first(bytes - 64)), crooked(kept.span().subspan(8)), inside(memory.span());
  const Status status = with(small);
  EXPECT_EQ(status.code, Code::kOutOfMemory);
  EXPECT_THAT(status.message, HasSubstr("of shared state but it has"));
  EXPECT_EQ(status.a, static_cast<int64_t>(bytes));
  EXPECT_EQ(with(crooked).code, Code::kInvalidArgument);
  EXPECT_EQ(with(inside).code, Code::kInvalidArgument) << "the session's own memory";
  SharedState in_arena(both.values.span());
  EXPECT_THAT(with(in_arena, &both.arena).message, HasSubstr("overlaps the shared arena"));
  EXPECT_THAT(with(other.state).message, HasSubstr("another model or profile"));
  EXPECT_FALSE(small.begun());
  ASSERT_TRUE(both.state.take());
  EXPECT_THAT(both.session[0].run().message, HasSubstr("another session that shares the state"));
  EXPECT_EQ(with(both.state).code, Code::kInvalidArgument);
  both.state.give_back();
  EXPECT_TRUE(both.session[0].run().ok());
}

TEST(SharedState, AFileHasTheSameStatesAtTheSamePlacesInAllEntries) {
  const auto refusal = [](const auto& change) {
    ModelBuilder b = two_entries_with_state();
    b.enter(1);
    change(b);
    const Running opened(b);
    return opened.status.ok() ? std::string() : std::string(opened.status.message);
  };
  EXPECT_EQ(refusal([](ModelBuilder&) {}), "");
  EXPECT_THAT(refusal([](ModelBuilder& b) {
                b.place(b.program().states[0].value).offset = 64;
                b.place(b.program().values[b.program().states[0].value].update).offset = 64;
              }),
              HasSubstr("another place than in the profile's first entry"));
  EXPECT_THAT(refusal([](ModelBuilder& b) { b.program().states[0].input = "other"; }),
              HasSubstr("its states differ"));
  EXPECT_THAT(refusal([](ModelBuilder& b) { b.program().values[b.program().states[0].value].initial = -1; }),
              HasSubstr("its states differ"));
  EXPECT_THAT(refusal([](ModelBuilder& b) { b.place(b.state(DType::kFloat32, {2}, -1, -1)).region = 1; }),
              HasSubstr("another number of states"));
}

}  // namespace
}  // namespace sinter::testing

// The C API: what it computes, what it refuses, and that it needs no heap where memory is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sinter/sinter_c.h"
#include "tests/common/source_dir.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const float kInput[6] = {-4, 0, 1, 2, -8, 3};

// y[2,3] = relu(x[2,3] + {1, 2, 3})
class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelBuilder b = add_relu();
    file_ = b.build();
    ASSERT_EQ(sinter_model_open_bytes(file_.span().data(), file_.span().size(), nullptr, &model_, &error_),
              SINTER_OK)
        << error_.text;
  }
  void TearDown() override { sinter_model_close(model_); }

  AlignedBytes file_;
  sinter_model* model_ = nullptr;
  sinter_error error_ = {};
};

void expect_results(sinter_session* session) {
  sinter_error error = {};
  float y[6] = {};
  ASSERT_EQ(sinter_set(session, "x", SINTER_FLOAT32, kInput, sizeof kInput, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_run(session, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_get(session, "y", SINTER_FLOAT32, y, sizeof y, &error), SINTER_OK) << error.text;
  EXPECT_THAT(y, ElementsAre(0, 2, 4, 3, 0, 6));
}

// A file as sinter convert --labels --meta wrote it.
TEST_F(CApi, GivesTheTextsOfTheFile) {
  sinter_model* model = nullptr;
  const std::string path = (source_dir() / "tests/format/corpus/v3_texts.sinter").string();
  ASSERT_EQ(sinter_model_open(path.c_str(), nullptr, &model, &error_), SINTER_OK) << error_.text;
  ASSERT_EQ(sinter_model_metadata_count(model), 3u);
  EXPECT_STREQ(sinter_model_metadata_key(model, 1), "model.domain");
  EXPECT_STREQ(sinter_model_metadata_value(model, 1), "org.example");
  EXPECT_EQ(sinter_model_metadata_key(model, 3), nullptr);
  EXPECT_STREQ(sinter_model_metadata(model, "license"), "MIT");
  EXPECT_EQ(sinter_model_metadata(model, "none"), nullptr);
  ASSERT_EQ(sinter_model_label_count(model, "y"), 3u);
  EXPECT_STREQ(sinter_model_label(model, "y", 2), "dog");
  EXPECT_EQ(sinter_model_label(model, "y", 3), nullptr);
  EXPECT_EQ(sinter_model_label(model, "x", 0), nullptr);
  sinter_model_close(model);
}

TEST_F(CApi, RunsAModel) {
  EXPECT_EQ(sinter_abi_version(), static_cast<uint32_t>(SINTER_ABI_VERSION));
  EXPECT_GT(std::strlen(sinter_version()), 0u);
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_session_create(model_, nullptr, &session, &error_), SINTER_OK) << error_.text;
  EXPECT_STREQ(error_.text, "");
  expect_results(session);
  sinter_tensor x, y;
  ASSERT_EQ(sinter_session_input_at(session, 0, &x, nullptr), SINTER_OK);
  ASSERT_EQ(sinter_session_output(session, "y", &y, nullptr), SINTER_OK);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.type, SINTER_FLOAT32);
  EXPECT_EQ(x.rank, 2);
  EXPECT_EQ(x.dims[1], 3);
  EXPECT_EQ(x.bytes, sizeof kInput);
  static_cast<float*>(x.data)[0] = 9;
  ASSERT_EQ(sinter_run(session, nullptr), SINTER_OK);
  EXPECT_EQ(static_cast<const float*>(y.data)[0], 10);
  EXPECT_EQ(sinter_session_output_length(session, "y", 1), 3);
  EXPECT_NE(sinter_session_step_backend(session, 0), nullptr);
  sinter_reset(session);
  sinter_session_destroy(session);
}

// y = state + x; state' = y. The state is kept from run to run, in an arena's session and across a move.
TEST(CApiState, IsNamedSavedAndMoved) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2});
  const int s = b.state(DType::kFloat32, {2}, -1, 2);
  b.regions = {0, 0};
  b.place(s).region = 1;
  const int y = b.value(DType::kFloat32, {2});
  b.step(AddAttrs{}, {s, x}, {y});
  b.output("y", y);
  b.name_state(s, "sum_in", "sum_out");
  const AlignedBytes file = b.build();
  sinter_error error = {};
  sinter_model* model = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(file.span().data(), file.span().size(), nullptr, &model, &error),
            SINTER_OK)
      << error.text;
  ASSERT_EQ(sinter_model_state_count(model, 0), 1u);
  EXPECT_EQ(sinter_model_state_count(model, 1), 0u);
  sinter_state state;
  ASSERT_EQ(sinter_model_state(model, 0, 0, &state), SINTER_OK);
  EXPECT_EQ(sinter_model_state(model, 0, 1, &state), SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(state.input, "sum_in");
  EXPECT_STREQ(state.output, "sum_out");
  EXPECT_EQ(state.bytes, 8u);
  EXPECT_EQ(state.starts_at_zero, 1);

  sinter_requirements needs = {};
  needs.size = sizeof needs;
  ASSERT_EQ(sinter_session_requirements(model, nullptr, &needs, &error), SINTER_OK) << error.text;
  EXPECT_EQ(needs.state + needs.shareable, needs.arena);
  EXPECT_GT(needs.shareable, 0u);
  const size_t alone = needs.bytes, shareable = needs.shareable;
  alignas(SINTER_ALIGNMENT) std::byte values[SINTER_ARENA_HANDLE + 4096];
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  EXPECT_EQ(sinter_arena_create(values, SINTER_ARENA_HANDLE - 1, &options.arena, &error),
            SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_arena_create(values + 1, sizeof values - 1, &options.arena, &error),
            SINTER_INVALID_ARGUMENT);
  ASSERT_EQ(sinter_arena_create(values, SINTER_ARENA_HANDLE + shareable, &options.arena, &error), SINTER_OK)
      << error.text;
  ASSERT_EQ(sinter_session_requirements(model, &options, &needs, &error), SINTER_OK) << error.text;
  EXPECT_EQ(needs.bytes, alone - shareable);

  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_session_create(model, &options, &session, &error), SINTER_OK) << error.text;
  const float numbers[2] = {1, 2};
  float sums[2] = {};
  const auto run = [&] {
    ASSERT_EQ(sinter_set(session, "x", SINTER_FLOAT32, numbers, sizeof numbers, &error), SINTER_OK);
    ASSERT_EQ(sinter_run(session, &error), SINTER_OK) << error.text;
    ASSERT_EQ(sinter_get(session, "y", SINTER_FLOAT32, sums, sizeof sums, &error), SINTER_OK);
  };
  run();
  sinter_tensor saved;
  ASSERT_EQ(sinter_session_state(session, "sum_in", &saved, &error), SINTER_OK) << error.text;
  EXPECT_EQ(saved.bytes, sizeof sums);
  EXPECT_EQ(static_cast<const float*>(saved.data)[1], 2);
  static_cast<float*>(saved.data)[0] = 100;
  EXPECT_EQ(sinter_session_state(session, "sum_out", &saved, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("'sum_out'"));
  run();
  EXPECT_THAT(sums, ElementsAre(101, 4));
  ASSERT_EQ(sinter_session_move(&session, &options, &error), SINTER_OK) << error.text;
  run();
  EXPECT_THAT(sums, ElementsAre(102, 6));
  sinter_session_options refused = options;
  refused.entry = 1;
  EXPECT_EQ(sinter_session_move(&session, &refused, &error), SINTER_INVALID_ARGUMENT);
  run();
  EXPECT_THAT(sums, ElementsAre(103, 8));
  sinter_session_destroy(session);
  sinter_arena_destroy(options.arena);
  ASSERT_EQ(sinter_arena_create(nullptr, shareable, &options.arena, &error), SINTER_OK) << error.text;
  ASSERT_EQ(sinter_session_create(model, &options, &session, &error), SINTER_OK) << error.text;
  run();
  EXPECT_THAT(sums, ElementsAre(1, 2));
  sinter_session_destroy(session);
  sinter_arena_destroy(options.arena);
  sinter_model_close(model);
}

TEST_F(CApi, DescribesTheModel) {
  EXPECT_EQ(sinter_model_entry_count(model_), 1u);
  EXPECT_EQ(sinter_model_input_count(model_, 0), 1u);
  EXPECT_EQ(sinter_model_output_count(model_, 0), 1u);
  EXPECT_EQ(sinter_model_find_input(model_, 0, "x"), 0);
  EXPECT_EQ(sinter_model_find_input(model_, 0, "y"), -1);
  EXPECT_EQ(sinter_model_find_output(model_, 0, "y"), 0);
  sinter_tensor port;
  ASSERT_EQ(sinter_model_output(model_, 0, 0, &port), SINTER_OK);
  EXPECT_STREQ(port.name, "y");
  EXPECT_EQ(port.data, nullptr);
  EXPECT_EQ(sinter_model_output(model_, 0, 1, &port), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_model_input(model_, 1, 0, &port), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_model_input_count(model_, 7), 0u);
  EXPECT_STREQ(sinter_type_name(port.type), "float32");
  EXPECT_STREQ(sinter_type_name(14), "float8e4m3fn");
  EXPECT_STREQ(sinter_type_name(-1), "?");
  EXPECT_STREQ(sinter_type_name(99), "?");
  ASSERT_EQ(sinter_model_profile_count(model_), 1u);
  EXPECT_NE(sinter_model_profile_name(model_, 0), nullptr);
  EXPECT_EQ(sinter_model_profile_name(model_, 1), nullptr);
  const uint32_t program = sinter_model_entry_program(model_, 0, sinter_model_default_profile(model_));
  ASSERT_EQ(sinter_model_step_count(model_, program), 2u);
  EXPECT_STREQ(sinter_model_step_op(model_, program, 0), "Add");
  EXPECT_EQ(sinter_model_step_op(model_, program, 2), nullptr);
  EXPECT_EQ(sinter_model_step_op(model_, 99, 0), nullptr);
}

TEST_F(CApi, StatesWhatIntegersStandFor) {
  ModelBuilder b;
  const int x = b.input("x", DType::kInt8, {2}), y = b.value(DType::kInt8, {2});
  b.program().values[static_cast<size_t>(x)].scale = 0.5f;
  b.step(relu(), {x}, {y});
  b.output("y", y);
  const AlignedBytes file = b.build();
  sinter_model* model = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(file.span().data(), file.span().size(), nullptr, &model, &error_),
            SINTER_OK)
      << error_.text;
  sinter_quantization in = {}, out = {1, 1};
  ASSERT_EQ(sinter_model_input_quantization(model, 0, 0, &in), SINTER_OK);
  ASSERT_EQ(sinter_model_output_quantization(model, 0, 0, &out), SINTER_OK);
  EXPECT_EQ(in.scale, 0.5f);
  EXPECT_EQ(out.scale, 0);
  EXPECT_EQ(sinter_model_input_quantization(model, 0, 1, &in), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_model_output_quantization(model, 1, 0, &out), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_model_output_quantization(model, 0, 0, nullptr), SINTER_INVALID_ARGUMENT);
  sinter_model_close(model);
}

TEST_F(CApi, ReportsWithNames) {
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_session_create(model_, nullptr, &session, &error_), SINTER_OK);
  EXPECT_EQ(sinter_set(session, "x", SINTER_INT8, kInput, sizeof kInput, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "input 0 'x': its type is float32 but the values are int8");
  EXPECT_EQ(sinter_get(session, "y", SINTER_FLOAT32, &error_, 3, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "output 0 'y': it has 24 bytes but the values have 3");
  EXPECT_EQ(sinter_set(session, "z", SINTER_FLOAT32, kInput, sizeof kInput, &error_),
            SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "the model does not have an input 'z'");
  EXPECT_EQ(sinter_set(nullptr, "x", SINTER_FLOAT32, kInput, sizeof kInput, &error_),
            SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "a required argument is NULL");
  EXPECT_EQ(sinter_run(nullptr, nullptr), SINTER_INVALID_ARGUMENT);
  sinter_session_destroy(session);

  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  const char* const names[] = {"simd", "abacus"};
  options.backends = names;
  options.backend_count = 2;
  EXPECT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "this build does not have a backend 'abacus'");
  options = SINTER_SESSION_OPTIONS_INIT;
  options.entry = 5;
  EXPECT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_INVALID_ARGUMENT);
  options.size = 1 << 20;
  EXPECT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error_.text, HasSubstr("SINTER_..._INIT"));

  sinter_model* other = nullptr;
  EXPECT_EQ(sinter_model_open("no/such/file", nullptr, &other, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error_.text, StartsWith("no/such/file: "));
  EXPECT_EQ(other, nullptr);
}

// A program that was compiled with a header of fewer options.
TEST_F(CApi, TakesOlderStructures) {
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.size = offsetof(sinter_session_options, profile);
  options.profile = "what an older program does not have";
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_OK) << error_.text;
  expect_results(session);
  sinter_session_destroy(session);
}

TEST_F(CApi, UsesTheCallersMemory) {
  size_t needed = 0;
  ASSERT_EQ(sinter_model_memory(file_.span().data(), file_.span().size(), nullptr, &needed, &error_),
            SINTER_OK);
  AlignedBytes model_memory(needed);
  sinter_open_options open = SINTER_OPEN_OPTIONS_INIT;
  open.memory = model_memory.span().data();
  sinter_model* model = nullptr;
  open.memory_bytes = needed - 1;
  EXPECT_EQ(sinter_model_open_bytes(file_.span().data(), file_.span().size(), &open, &model, &error_),
            SINTER_OUT_OF_MEMORY);
  open.memory_bytes = needed;
  ASSERT_EQ(sinter_model_open_bytes(file_.span().data(), file_.span().size(), &open, &model, &error_),
            SINTER_OK)
      << error_.text;
  EXPECT_LE(sinter_model_retained(model), needed);
  EXPECT_EQ(sinter_model_bytes(model), needed);

  sinter_requirements requirements = {};
  EXPECT_EQ(sinter_session_requirements(model, nullptr, &requirements, &error_), SINTER_INVALID_ARGUMENT);
  requirements.size = sizeof requirements;
  ASSERT_EQ(sinter_session_requirements(model, nullptr, &requirements, &error_), SINTER_OK) << error_.text;
  AlignedBytes memory(requirements.bytes);
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.memory = memory.span().data();
  options.memory_bytes = requirements.bytes - 1;
  sinter_session* session = nullptr;
  EXPECT_EQ(sinter_session_create(model, &options, &session, &error_), SINTER_OUT_OF_MEMORY);
  options.memory_bytes = requirements.bytes;
  ASSERT_EQ(sinter_session_create(model, &options, &session, &error_), SINTER_OK) << error_.text;
  EXPECT_EQ(static_cast<void*>(session), options.memory);
  expect_results(session);
  sinter_session_destroy(session);
  sinter_model_close(model);
}

TEST_F(CApi, SharesPackedWeightsAndThreads) {
  sinter_pool* pool = sinter_pool_create(2);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(sinter_pool_threads(pool), 2);
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.pool = pool;
  sinter_packed_weights* packed = nullptr;
  ASSERT_EQ(sinter_packed_create(model_, &options, &packed, &error_), SINTER_OK) << error_.text;
  options.packed_weights = packed;
  for (int i = 0; i < 2; ++i) {
    sinter_session* session = nullptr;
    ASSERT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_OK) << error_.text;
    expect_results(session);
    sinter_session_destroy(session);
  }
  sinter_packed_destroy(packed);
  sinter_own_pool own = {};
  options.own_pool = &own;
  sinter_session* session = nullptr;
  EXPECT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_INVALID_ARGUMENT);
  sinter_pool_destroy(pool);
  sinter_session_destroy(nullptr);
  sinter_packed_destroy(nullptr);
  sinter_pool_destroy(nullptr);
}

TEST_F(CApi, SetsWhereAPoolsThreadsRun) {
  std::vector<int32_t> fast(4096);
  const size_t n = sinter_fastest_processors(fast.data(), fast.size());
  ASSERT_GE(n, 1U);
  EXPECT_EQ(sinter_fastest_processors(fast.data(), 1), 1U);
  EXPECT_EQ(sinter_fastest_processors(nullptr, 1), 0U);
  sinter_thread_settings settings = SINTER_THREAD_SETTINGS_INIT;
  settings.processors = fast.data();
  settings.processor_count = n;
  sinter_pool* pool = nullptr;
  ASSERT_EQ(sinter_pool_create_with(2, &settings, &pool, &error_), SINTER_OK) << error_.text;
  EXPECT_EQ(sinter_pool_threads(pool), 2);
  sinter_pool_destroy(pool);
  const int32_t absent = -1;
  EXPECT_EQ(sinter_pool_create(5000), nullptr);
  EXPECT_EQ(sinter_pool_create_with(5000, nullptr, &pool, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error_.text, "1024"), nullptr) << error_.text;
  settings.processors = &absent;
  settings.processor_count = 1;
  EXPECT_EQ(sinter_pool_create_with(2, &settings, &pool, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(pool, nullptr);
  EXPECT_NE(std::string(error_.text).find("processor -1"), std::string::npos) << error_.text;
  settings.processors = nullptr;
  EXPECT_EQ(sinter_pool_create_with(2, &settings, &pool, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_pool_create_with(-1, nullptr, &pool, &error_), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_pool_create_with(2, nullptr, nullptr, &error_), SINTER_INVALID_ARGUMENT);
  settings = {};  // without its size
  EXPECT_EQ(sinter_pool_create_with(2, &settings, &pool, &error_), SINTER_INVALID_ARGUMENT);
}

TEST_F(CApi, RunsOnThreadsOfTheApplication) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {64, 4096}), y = b.value(DType::kFloat32, {64, 4096});
  b.step(relu(), {x}, {y});
  b.output("y", y);
  const AlignedBytes file = b.build();
  sinter_model* model = nullptr;
  ASSERT_EQ(sinter_model_open_bytes(file.span().data(), file.span().size(), nullptr, &model, &error_),
            SINTER_OK);
  int calls = 0;
  sinter_own_pool own = {&calls,
                         [](void* context, sinter_task task, void* of, int64_t count, int64_t grain) {
                           ++*static_cast<int*>(context);
                           for (int64_t i = 0; i < count; i += grain) task(of, i, std::min(i + grain, count));
                         },
                         3};
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.own_pool = &own;
  options.backend = "simd";
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_session_create(model, &options, &session, &error_), SINTER_OK) << error_.text;
  own = {};  // the session has a copy
  std::vector<float> values(64 * 4096, -1);
  ASSERT_EQ(sinter_set(session, "x", SINTER_FLOAT32, values.data(), values.size() * 4, &error_), SINTER_OK);
  ASSERT_EQ(sinter_run(session, &error_), SINTER_OK) << error_.text;
  ASSERT_EQ(sinter_get(session, "y", SINTER_FLOAT32, values.data(), values.size() * 4, &error_), SINTER_OK);
  EXPECT_EQ(values, std::vector<float>(64 * 4096, 0));
  EXPECT_GT(calls, 0);
  sinter_session_destroy(session);
  sinter_model_close(model);
}

TEST_F(CApi, BindsBuffersAndReportsSteps) {
  alignas(SINTER_ALIGNMENT) float x[32] = {1, 1, 1, 1, 1, 1};
  const sinter_binding binding = {"x", x, sizeof x, nullptr};
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  options.bindings = &binding;
  options.binding_count = 1;
  options.backend = "simd";
  int fallbacks = 0;
  options.on_fallback_context = &fallbacks;
  options.on_fallback = [](void* count, const sinter_fallback* f) {
    EXPECT_STREQ(f->expected, "simd");
    EXPECT_GT(std::strlen(f->reason), 0u);
    ++*static_cast<int*>(count);
  };
  sinter_session* session = nullptr;
  ASSERT_EQ(sinter_session_create(model_, &options, &session, &error_), SINTER_OK) << error_.text;
  EXPECT_EQ(static_cast<uint32_t>(fallbacks), sinter_session_fallbacks(session));
  struct Counts {
    int before = 0, after = 0;
  } counts;
  const sinter_observer observer = {sizeof observer, &counts,
                                    [](void* c, const sinter_step*) { ++static_cast<Counts*>(c)->before; },
                                    [](void* c, const sinter_step*) { ++static_cast<Counts*>(c)->after; }};
  sinter_session_observe(session, &observer);
  ASSERT_EQ(sinter_run(session, &error_), SINTER_OK);
  EXPECT_EQ(counts.before, 2);
  EXPECT_EQ(counts.after, 2);
  sinter_session_observe(session, nullptr);
  ASSERT_EQ(sinter_run(session, &error_), SINTER_OK);
  EXPECT_EQ(counts.after, 2);
  float y[6];
  ASSERT_EQ(sinter_get(session, "y", SINTER_FLOAT32, y, sizeof y, &error_), SINTER_OK);
  EXPECT_THAT(y, ElementsAre(2, 3, 4, 2, 3, 4));
  EXPECT_EQ(sinter_run_async(session, nullptr, &error_), SINTER_UNSUPPORTED);
  EXPECT_EQ(sinter_wait(session, &error_), SINTER_OK);
  sinter_session_destroy(session);
}

}  // namespace
}  // namespace sinter::testing

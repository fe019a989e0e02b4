// How deep the stack gets while a model is opened, and while a session is measured, created and run.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>

#include "tests/format/sample_models.h"
#include "tests/unit/running.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SINTER_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define SINTER_TEST_SANITIZED 1
#endif
#endif

namespace sinter::test {
namespace {

// Bytes of a painted stack that a thread has written.
template <class F>
size_t depth_of(F function) {
  constexpr size_t kBytes = size_t{1} << 20;
  constexpr std::byte kPaint{0xa7};
  const testing::AlignedBytes stack(kBytes);
  std::memset(stack.data(), static_cast<int>(kPaint), kBytes);
  pthread_attr_t attributes;
  pthread_t thread;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack.data(), kBytes), 0);
  const auto start = [](void* f) -> void* { return (*static_cast<F*>(f))(), nullptr; };
  EXPECT_EQ(pthread_create(&thread, &attributes, start, &function), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  size_t untouched = 0;
  while (untouched < kBytes && stack.data()[untouched] == kPaint) ++untouched;
  return kBytes - untouched;
}

struct Depths {
  size_t open = 0, create = 0, run = 0;
};
Depths depths(testing::ModelBuilder b) {
  const size_t thread = depth_of([] {});
  testing::Running r(b);
  EXPECT_TRUE(r.status.ok()) << r.why();
  r.session.destroy();
  const OpenOptions options{.kernels = reference_kernels()};
  Depths d;
  d.open = depth_of([&] { r.model = Model::open(r.file.span(), r.model_memory.span(), options).value(); }) -
           thread;
  d.create = depth_of([&] { r.session = std::move(Session::create(r.model, r.memory.span(), {}).value()); }) -
             thread;
  d.run = depth_of([&] { EXPECT_TRUE(r.session.run().ok()); }) - thread;
  std::printf("stack: open %zu, create %zu, run %zu bytes\n", d.open, d.create, d.run);
  return d;
}

class Stack : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef SINTER_TEST_SANITIZED
    GTEST_SKIP() << "sanitizers widen every frame";
#endif
  }
};

// As much on a microcontroller, where it comes out of some tens of kilobytes.
TEST_F(Stack, OpeningTakesFewKilobytes) {
  EXPECT_LE(depths(testing::plain_model()).open, 6144u);
  EXPECT_LE(depths(testing::control_model()).open, 6144u);
  // Operands come out of the scratch memory that the file states.
  testing::ModelBuilder b;
  std::vector<int32_t> parts;
  for (int i = 0; i < 127; ++i) parts.push_back(b.input("x" + std::to_string(i), DType::kFloat32, {1, 2}));
  const int y = b.value(DType::kFloat32, {127, 2});
  b.step(ConcatAttrs{0}, parts, {y});
  b.output("y", y);
  EXPECT_LE(depths(std::move(b)).open, 6144u);
}

}  // namespace
}  // namespace sinter::test

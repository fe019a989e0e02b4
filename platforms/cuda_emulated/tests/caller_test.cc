// Callers with device memory and a stream of their own.
#include <gtest/gtest.h>

#include "platforms/cuda_emulated/tests/sessions.h"

namespace sinter::cuda {
namespace {

// A caller with device memory and a stream of its own.
class Caller {
 public:
  Caller() {
    EXPECT_TRUE(emulated.allocate(kBytes, kBufferAlignment, &in).ok());
    EXPECT_TRUE(emulated.allocate(kBytes, kBufferAlignment, &out).ok());
    const InContext current(emulated.device());
    EXPECT_EQ(api().create_stream(&stream, 0), kDriverSuccess);
  }
  ~Caller() {
    const InContext current(emulated.device());
    (void)api().destroy_stream(stream);
    emulated.free(in), emulated.free(out);
  }
  const EntryPoints& api() const { return emulated.device().api(); }
  DriverResult upload(const std::vector<float>& x) {
    const InContext current(emulated.device());
    return api().upload(reinterpret_cast<DeviceAddress>(in), x.data(), x.size() * sizeof(float), stream);
  }
  // Downloads the stream's results when all jobs that are in it now are done.
  DriverResult download(std::vector<float>* y) {
    const InContext current(emulated.device());
    return api().download(y->data(), reinterpret_cast<DeviceAddress>(out), y->size() * sizeof(float), stream);
  }
  DriverResult synchronize() {
    const InContext current(emulated.device());
    return api().synchronize(stream);
  }

  static constexpr size_t kBytes = 24 + kReadPadding;
  std::byte *in = nullptr, *out = nullptr;
  StreamHandle stream = nullptr;
};

TEST(CudaQueue, RunsInTheOrderOfACallersStream) {
  FarModel b = copies(3);
  Caller caller;
  const Binding bindings[] = {{"x", {caller.in, Caller::kBytes}, "cuda-emulated"},
                              {"y", {caller.out, Caller::kBytes}, "cuda-emulated"}};
  SessionOptions options = kOnDevice;
  options.bindings = bindings;
  Running r(b, options);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.session.input(0).data, caller.in);
  EXPECT_EQ(r.session.input(0).memory, 1);
  std::vector<std::vector<float>> x, y(3, std::vector<float>(6));
  for (int i = 0; i < 3; ++i) x.push_back(testing::numbers(6, i));
  const Counted counted;
  for (size_t i = 0; i < 3; ++i) {  // nothing waits here
    ASSERT_EQ(caller.upload(x[i]), kDriverSuccess);
    const Status started = r.session.run_async(caller.stream);
    ASSERT_TRUE(started.ok()) << testing::sentence(started);
    ASSERT_EQ(caller.download(&y[i]), kDriverSuccess);
  }
  EXPECT_EQ(counted.since().synchronizations, 0);
  EXPECT_EQ(caller.synchronize(), kDriverSuccess);
  EXPECT_EQ(y, x);
  EXPECT_EQ(counted.since().uploads, 3);  // the caller's own
  EXPECT_TRUE(r.session.wait().ok());

  // This run has no stream.
  ASSERT_EQ(caller.upload(x[1]), kDriverSuccess);
  ASSERT_EQ(caller.synchronize(), kDriverSuccess);
  ASSERT_TRUE(r.session.run().ok());
  ASSERT_EQ(caller.download(&y[0]), kDriverSuccess);
  ASSERT_EQ(caller.synchronize(), kDriverSuccess);
  EXPECT_EQ(y[0], x[1]);
}

TEST(CudaQueue, RefusesBindingsThatTheHostNeeds) {
  FarModel b = copies(2);
  Caller caller;
  const auto refusal = [&](FarModel& model, const Binding& binding) {
    SessionOptions options = kOnDevice;
    options.bindings = {&binding, 1};
    return testing::sentence(Running(model, options).status);
  };
  EXPECT_NE(refusal(b, {"x", {caller.in, Caller::kBytes}, "nowhere"}).find("device memory of 'nowhere'"),
            std::string::npos);
  EXPECT_NE(refusal(b, {"x", {caller.in, 8}, "cuda-emulated"}).find("needs 24 bytes"), std::string::npos)
      << refusal(b, {"x", {caller.in, 8}, "cuda-emulated"});
  FarModel host({"cuda-emulated"});
  const int x = host.input("x", DType::kFloat32, {2, 3}), y = host.value(DType::kFloat32, {2, 3});
  host.step(NegAttrs{}, {x}, {y});
  host.output("y", y);
  host.output("z", host.down(host.up(x)));
  EXPECT_NE(refusal(host, {"x", {caller.in, Caller::kBytes}, "cuda-emulated"})
                .find("the host computes or reads 'x'"),
            std::string::npos);
  EXPECT_NE(refusal(host, {"y", {caller.out, Caller::kBytes}, "cuda-emulated"})
                .find("the host computes or reads 'y'"),
            std::string::npos);
  // A run with a part on the host cannot be left to a stream.
  const Binding one{"x", {caller.in, Caller::kBytes}, "cuda-emulated"};
  SessionOptions options = kOnDevice;
  options.bindings = {&one, 1};
  Running r(b, options);
  ASSERT_RUNNING(r);
  EXPECT_EQ(r.session.run_async(caller.stream).code, Code::kUnsupported);
}

}  // namespace
}  // namespace sinter::cuda

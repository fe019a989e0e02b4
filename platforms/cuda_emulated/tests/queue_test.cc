// Sessions on the stand-in for the driver: graphs, transfers, memory, and failures of the driver.
#include <gtest/gtest.h>

#include <thread>

#include "platforms/cuda/emulator/stand_in.h"
#include "platforms/cuda_emulated/cuda_emulated_backend.h"
#include "tests/memory/far_models.h"
#include "tests/memory/watch.h"

namespace sinter::cuda {
namespace {

using sinter::testing::expect_same_bits;
using sinter::testing::FarModel;
using sinter::testing::fill_x;
using sinter::testing::Running;

constinit CudaEmulatedBackend emulated;
Backend* const backends[] = {&emulated};
const SessionOptions kOnDevice{.backends = backends};

// What the stand-in has done since this was made.
class Counted {
 public:
  StandInCounts since() const {
    StandInCounts now = stand_in_counts();
    for (int64_t StandInCounts::*n :
         {&StandInCounts::allocations, &StandInCounts::frees, &StandInCounts::bytes,
          &StandInCounts::staging_allocations, &StandInCounts::staging_frees, &StandInCounts::uploads,
          &StandInCounts::downloads, &StandInCounts::launches, &StandInCounts::graphs,
          &StandInCounts::graph_launches, &StandInCounts::synchronizations})
      now.*n -= before_.*n;
    return now;
  }

 private:
  StandInCounts before_ = stand_in_counts();
};

// y = x, through `steps` steps of the device; with `host`, halfway through one of the host.
FarModel copies(int steps, bool host = false) {
  FarModel b({"cuda-emulated"});
  int at = b.up(b.input("x", DType::kFloat32, {2, 3}));
  for (int i = 0; i < steps; ++i) {
    if (host && i == steps / 2) {
      const int here = b.value(DType::kFloat32, {2, 3});
      b.step(NegAttrs{}, {b.down(at)}, {here});
      at = b.up(here);
    }
    const int next = b.far_value(DType::kFloat32, {2, 3});
    b.far_step(CopyAttrs{}, {at}, {next});
    at = next;
  }
  b.output("y", b.down(at));
  return b;
}

TEST(CudaQueue, StartsAGroupOfStepsAsOneGraph) {
  FarModel b = copies(5);
  const Counted all;
  {
    const Counted creation;
    Running r(b, kOnDevice);
    ASSERT_RUNNING(r);
    EXPECT_EQ(creation.since().graphs, 1);
    EXPECT_EQ(creation.since().allocations, 1);  // one block
    EXPECT_EQ(creation.since().staging_allocations, 1);
    EXPECT_EQ(creation.since().bytes, static_cast<int64_t>(r.needs.devices[0].bytes));
    for (int run = 0; run < 3; ++run) {
      fill_x(r.session, run);
      const Counted counted;
      ASSERT_TRUE(r.session.run().ok());
      const StandInCounts done = counted.since();
      EXPECT_EQ(done.graph_launches, 1);
      EXPECT_EQ(done.launches, 5);
      EXPECT_EQ(done.uploads, 1);
      EXPECT_EQ(done.downloads, 1);
      EXPECT_EQ(done.synchronizations, 1);
      EXPECT_EQ(done.allocations + done.staging_allocations, 0);
    }
    expect_same_bits(r, fill_x);
  }
  EXPECT_EQ(all.since().bytes, 0);
  EXPECT_EQ(all.since().staging_allocations, all.since().staging_frees);
}

TEST(CudaQueue, EndsAGroupWhereTheHostComputes) {
  FarModel b = copies(4, true);
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  const Counted counted;
  fill_x(r.session, 0);
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(counted.since().graph_launches, 2);
  EXPECT_EQ(counted.since().synchronizations, 2);
  expect_same_bits(r, fill_x);
}

// What one step downloads and the next one uploads is this run's.
TEST(CudaQueue, UploadsWhatItHasDownloaded) {
  FarModel b({"cuda-emulated"});
  const int x = b.up(b.input("x", DType::kFloat32, {2, 3}));
  b.output("y", b.down(b.up(b.down(x))));
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  expect_same_bits(r, fill_x);
}

TEST(CudaQueue, AllocatesNothingInARun) {
  FarModel b = copies(3, true);
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  ASSERT_TRUE(r.session.run().ok());
  const test::Seen seen = test::watched(false, [&] {
    for (int i = 0; i < test::watched_runs(20); ++i) EXPECT_TRUE(r.session.run().ok());
  });
  EXPECT_TRUE(seen.nothing()) << seen.text();
}

// An observer sees every step by itself, with the same results.
TEST(CudaQueue, RunsStepsOneByOneForAnObserver) {
  FarModel b = copies(3);
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  int steps = 0;
  StepObserver observer;
  observer.context = &steps;
  observer.after = [](void* context, const StepInfo& info, const OpCall&) {
    EXPECT_STREQ(info.backend, "cuda-emulated");
    ++*static_cast<int*>(context);
  };
  r.session.set_observer(&observer);
  const Counted counted;
  expect_same_bits(r, fill_x, 1);
  EXPECT_EQ(steps, 5);
  EXPECT_EQ(counted.since().graph_launches, 0);
  r.session.set_observer(nullptr);
  expect_same_bits(r, fill_x, 1);
}

// y = relu(x + 1) * relu(x + 1), z = x + 1
FarModel elements() {
  FarModel b({"cuda-emulated"});
  const int x = b.up(b.input("x", DType::kFloat32, {2, 3}));
  const int one = b.constant<float>(DType::kFloat32, {}, {1});
  const int z = b.far_value(DType::kFloat32, {2, 3}), r = b.far_value(DType::kFloat32, {2, 3}),
            y = b.far_value(DType::kFloat32, {2, 3});
  b.far_step(AddAttrs{}, {x, one}, {z});
  b.far_step(testing::relu(), {z}, {r});
  b.far_step(MulAttrs{}, {r, r}, {y});
  b.output("y", b.down(y));
  b.output("z", b.down(z));
  return b;
}

TEST(CudaQueue, LaunchesElementWiseStepsInARowAsOne) {
  FarModel b = elements();
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  fill_x(r.session, 0);
  const Counted together;
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(together.since().launches, 1);
  expect_same_bits(r, fill_x);
  const StepObserver none;
  r.session.set_observer(&none);
  const Counted apart;
  expect_same_bits(r, fill_x, 1);
  EXPECT_EQ(apart.since().launches, 3);
}

// The last step of a group need not run by itself.
TEST(CudaQueue, EndsAGroupWithinAChain) {
  FarModel b({"cuda-emulated"});
  const int x = b.up(b.input("x", DType::kFloat32, {2, 3}));
  const int z = b.far_value(DType::kFloat32, {2, 3});
  const int state = b.state(DType::kFloat32, {2, 3}, -1, -1);
  b.place(state).region = 1;
  b.output("y", b.down(state));
  const int half = b.far_value(DType::kFloat32, {2, 3});
  b.far_step(NegAttrs{}, {x}, {half});
  b.far_step(AddAttrs{}, {half, x}, {z});
  b.spec(state).update = z;
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  expect_same_bits(r, fill_x);
}

TEST(CudaQueue, KeepsStatesOnTheDevice) {
  FarModel b({"cuda-emulated"});
  const int x = b.input("x", DType::kFloat32, {4});
  const int state =
      b.state(DType::kFloat32, {4}, b.add_constant<float>(DType::kFloat32, {4}, {1, 2, 3, 4}), -1);
  b.place(state).region = 1;
  const int last = b.up(x);
  b.spec(state).update = last;
  b.output("y", b.down(state));
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  expect_same_bits(r, fill_x);
  r.session.reset();
  fill_x(r.session, 7);
  ASSERT_TRUE(r.session.run().ok());
  EXPECT_EQ(r.get<float>("y"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(CudaQueue, ServesSessionsOnSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([t] {
      FarModel b = copies(2 + t, t == 1);
      Running r(b, kOnDevice);
      ASSERT_RUNNING(r);
      expect_same_bits(r, fill_x, 20);
    });
  for (std::thread& t : threads) t.join();
}

TEST(CudaQueue, TakesABlockOfTheCallers) {
  FarModel b = copies(2);
  Running measured(b, kOnDevice);
  ASSERT_RUNNING(measured);
  const size_t bytes = measured.needs.devices[0].bytes;
  std::byte* block = nullptr;
  ASSERT_TRUE(emulated.allocate(bytes, kBufferAlignment, &block).ok());
  {
    DeviceBlock given[] = {{"cuda-emulated", {block, bytes}}};
    SessionOptions options = kOnDevice;
    options.devices = given;
    const Counted counted;
    Running r(b, options);
    ASSERT_RUNNING(r);
    EXPECT_EQ(counted.since().allocations, 0);
    expect_same_bits(r, fill_x, 1);
    given[0].block = {block, bytes - 1};
    Running small(b, options);
    EXPECT_EQ(small.status.code, Code::kOutOfMemory);
  }
  emulated.free(block);
}

// y = x + 0 * constant, in that a step of the device copies the constant.
FarModel with_constant() {
  FarModel b({"cuda-emulated"});
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const int c = b.constant<float>(DType::kFloat32, {1000}, numbers);
  const int x = b.up(b.input("x", DType::kFloat32, {4}));
  const int copied = b.far_value(DType::kFloat32, {1000}), again = b.far_value(DType::kFloat32, {1000});
  b.far_step(CopyAttrs{}, {c}, {copied});
  b.far_step(CopyAttrs{}, {c}, {again});
  b.output("y", b.down(x));
  b.output("z", b.down(copied));
  b.output("w", b.down(again));
  return b;
}

TEST(CudaQueue, BringsAConstantOnceForStepsAndSessions) {
  FarModel b = with_constant();
  Running alone(b, kOnDevice);
  ASSERT_RUNNING(alone);
  expect_same_bits(alone, fill_x, 1);
  const size_t constant = align_up(size_t{4000} + kReadPadding, kBufferAlignment);
  EXPECT_LT(alone.needs.devices[0].prepared, 2 * constant);

  const auto needs = PackedWeights::requirements(alone.model, kOnDevice);
  ASSERT_TRUE(needs.ok()) << testing::sentence(needs.status());
  ASSERT_EQ(needs.value().device_count, 1u);
  const size_t bytes = needs.value().devices[0].bytes;
  std::byte* block = nullptr;
  ASSERT_TRUE(emulated.allocate(bytes, kBufferAlignment, &block).ok());
  {
    const DeviceBlock given[] = {{"cuda-emulated", {block, bytes}}};
    SessionOptions packing = kOnDevice;
    packing.devices = given;
    testing::AlignedBytes memory(needs.value().bytes);
    const Counted counted;
    const auto packed = PackedWeights::create(alone.model, memory.span(), packing);
    ASSERT_TRUE(packed.ok()) << testing::sentence(packed.status());
    EXPECT_EQ(packed.value().count(), 1u);
    EXPECT_EQ(counted.since().uploads, 1);
    EXPECT_EQ(counted.since().staging_allocations, counted.since().staging_frees);
    SessionOptions options = kOnDevice;
    options.packed_weights = &packed.value();
    for (int i = 0; i < 2; ++i) {
      const auto need = Session::requirements(alone.model, options);
      ASSERT_TRUE(need.ok());
      EXPECT_EQ(need.value().devices[0].prepared + constant, alone.needs.devices[0].prepared);
      testing::AlignedBytes own(need.value().bytes);
      const Counted creation;
      auto session = Session::create(alone.model, own.span(), options);
      ASSERT_TRUE(session.ok()) << testing::sentence(session.status());
      EXPECT_EQ(creation.since().uploads, 0);
      fill_x(*session, i);
      ASSERT_TRUE(session->run().ok());
      const TensorView z = session->output("w");
      for (int k = 0; k < 1000; ++k) EXPECT_EQ(z.as<float>()[k], static_cast<float>(k));
      session->destroy();
    }
    // Without a block, sessions bring it themselves.
    const auto without = PackedWeights::create(alone.model, memory.span(), kOnDevice);
    ASSERT_TRUE(without.ok());
    EXPECT_EQ(without.value().count(), 0u);
    options.packed_weights = &without.value();
    EXPECT_EQ(Session::requirements(alone.model, options).value().devices[0].prepared,
              alone.needs.devices[0].prepared);
    const DeviceBlock small[] = {{"cuda-emulated", {block, bytes - 1}}};
    packing.devices = small;
    EXPECT_EQ(PackedWeights::create(alone.model, memory.span(), packing).status().code, Code::kOutOfMemory);
  }
  emulated.free(block);
}

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
  // Of what the stream has computed when all that is in it now is done.
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

  // Without a stream.
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

// Whatever call of the driver fails, creation reports it and gives back what it took.
TEST(CudaQueue, ReportsEveryFailureOfTheDriver) {
  FarModel b = copies(2, true);
  for (const char* entry :
       {"allocate", "allocate_host", "upload", "create_stream", "create_event", "fill", "synchronize",
        "begin_capture", "end_capture", "instantiate", "upload_graph", "launch"}) {
    SCOPED_TRACE(entry);
    const Counted counted;
    fail_next(entry, kDriverOutOfMemory);
    {
      Running r(b, kOnDevice);
      fail_next(nullptr, kDriverSuccess);
      EXPECT_EQ(r.status.code, Code::kOutOfMemory) << r.why();
    }
    EXPECT_EQ(counted.since().bytes, 0);
    EXPECT_EQ(counted.since().staging_allocations, counted.since().staging_frees);
  }
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  for (const char* entry : {"launch_graph", "synchronize"}) {
    SCOPED_TRACE(entry);
    fail_next(entry, 719);
    const Status status = r.session.run();
    EXPECT_EQ(status.code, Code::kInternal);
    EXPECT_NE(testing::sentence(status).find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos)
        << testing::sentence(status);
    fail_next(nullptr, kDriverSuccess);
    (void)r.session.run();  // what was under way
    expect_same_bits(r, fill_x, 1);
  }
}

}  // namespace
}  // namespace sinter::cuda

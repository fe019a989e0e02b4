// Groups of steps as graphs, the order of transfers, and failures of the driver.
#include <gtest/gtest.h>

#include "platforms/cuda_emulated/tests/sessions.h"
#include "tests/memory/watch.h"

namespace sinter::cuda {
namespace {

TEST(CudaQueue, StartsAGroupOfStepsAsOneGraph) {
  FarModel b = copies(5);
  const Counted all;
  {
    const Counted creation;
    Running r(b, kOnDevice);
    ASSERT_RUNNING(r);
    EXPECT_EQ(creation.since().graphs, 1);
    EXPECT_EQ(creation.since().overlapping_launches, 4);  // not the one behind the upload
    EXPECT_EQ(creation.since().allocations, 1);           // one block
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

// The bytes that one step downloads and the next one uploads are this run's.
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

// An observer sees every step by itself, with its kernel, and the same results.
TEST(CudaQueue, RunsStepsOneByOneForAnObserver) {
  FarModel b = copies(3);
  Running r(b, kOnDevice);
  ASSERT_RUNNING(r);
  int steps = 0;
  StepObserver observer;
  observer.context = &steps;
  observer.after = [](void* context, const StepInfo& info, const OpCall&) {
    EXPECT_STREQ(info.backend, "cuda-emulated");
    const bool transfer = info.step == 0 || info.step == 4;
    EXPECT_STREQ(info.kernel, transfer ? nullptr : "move");
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

// Whichever call of the driver fails, creation reports it and gives back everything that it took.
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
    (void)r.session.run();  // the one under way
    expect_same_bits(r, fill_x, 1);
  }
}

}  // namespace
}  // namespace sinter::cuda

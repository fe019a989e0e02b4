// A model is replaced by its next version while threads run the old one, as docs/application.md shows.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sinter/runner.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

constexpr int kVersions = 60, kWorkers = 2;

// y = x + version
AlignedBytes version_file(int version) {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {4});
  const int c = b.constant<float>(DType::kFloat32, {1}, {static_cast<float>(version)});
  const int y = b.value(DType::kFloat32, {4});
  b.step(AddAttrs{}, {x, c}, {y});
  b.output("y", y);
  return b.build();
}

// What the workers run: replaced as a whole, and closed when the last worker has left it.
struct Version {
  int number = 0;
  AlignedBytes file;
  Runner net;
};
class Live {
 public:
  std::shared_ptr<Version> get() const {
    const std::scoped_lock lock(mutex_);
    return version_;
  }
  void set(std::shared_ptr<Version> version) {
    const std::scoped_lock lock(mutex_);
    version_.swap(version);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Version> version_;
};

std::shared_ptr<Version> opened(int number) {
  auto version = std::make_shared<Version>();
  version->number = number;
  version->file = version_file(number);
  version->net = Runner::open(version->file.span());
  EXPECT_TRUE(version->net.ok()) << version->net.error();
  return version;
}

TEST(Threads, RunAModelWhileItIsReplaced) {
  Live live;
  live.set(opened(0));
  std::atomic<int> newest{0}, wrong{0}, failures{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  std::vector<int> runs(kWorkers);
  for (int w = 0; w < kWorkers; ++w)
    workers.emplace_back([&, w] {
      std::shared_ptr<Version> running;
      Runner net;
      do {
        const int oldest = newest;
        if (const auto now = live.get(); now != running) {
          net = now->net.another();  // before `running` lets go of the file
          running = now;
        }
        wrong += running->number < oldest;
        for (int i = 0; i < 4; ++i) {
          net.set("x", std::vector<float>{1, 2, 3, static_cast<float>(i)});
          net.run();
          const auto y = net.get<float>("y");
          failures += !net.ok();
          wrong += y.size() != 4 || y[3] != static_cast<float>(i + running->number);
        }
        runs[static_cast<size_t>(w)] += 4;
      } while (!stop);
      net = Runner();
    });
  for (int number = 1; number <= kVersions; ++number) {
    live.set(opened(number));
    newest = number;
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(wrong, 0);
  for (const int n : runs) EXPECT_GE(n, 4);
}

}  // namespace
}  // namespace sinter::testing

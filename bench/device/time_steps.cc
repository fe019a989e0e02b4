// sinter_time_steps: the time of each step on each backend, where the sinter program does not run.
//
//     sinter_time_steps MODEL.sinter [RUNS] > times.txt
//
// Runs the model on one backend after the other, RUNS times in turns (default 20), on one thread, with inputs
// of small numbers. Prints "profile NAME", then for every step that a backend computed "PROGRAM STEP BACKEND
// NANOSECONDS", the lowest of all runs, for `sinter tune --times`.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "bench/device/setup.h"
#include "sinter/file_map.h"

namespace {

using Clock = std::chrono::steady_clock;
using sinter::device::must;
using sinter::device::take;

struct Timed {
  const char* backend = "";
  sinter::Session session;
  sinter::StepObserver observer;
  Clock::time_point start;
  std::map<std::pair<uint32_t, uint32_t>, double> run, lowest;

  Timed(const sinter::Model& model, const char* name) : backend(name) {
    const sinter::SessionOptions options{.backends = sinter::default_backends(), .backend = name};
    const sinter::Requirements need =
        must("the session was refused", sinter::Session::requirements(model, options));
    session = must("the session was refused", sinter::Session::create(model, take(need.bytes), options));
    observer.context = this;
    observer.before = [](void* self, const sinter::StepInfo&) {
      static_cast<Timed*>(self)->start = Clock::now();
    };
    observer.after = [](void* self, const sinter::StepInfo& info, const sinter::OpCall&) {
      auto& timed = *static_cast<Timed*>(self);
      const double ns = std::chrono::duration<double, std::nano>(Clock::now() - timed.start).count();
      if (std::strcmp(info.backend, timed.backend) == 0) timed.run[{info.program, info.step}] += ns;
    };
    session.set_observer(&observer);
  }
  void once() {
    run.clear();
    for (uint32_t i = 0; i < session.input_count(); ++i) {
      const sinter::TensorView x = session.input(i);
      std::memset(x.data, 0x31, static_cast<size_t>(x.dense_bytes()));
    }
    if (const sinter::Status status = session.run(); !status.ok())
      sinter::device::fail("the run failed", status);
    for (const auto& [step, ns] : run) {
      const auto [at, added] = lowest.try_emplace(step, ns);
      if (!added && ns < at->second) at->second = ns;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const long runs = argc > 2 ? std::atol(argv[2]) : 20;
  if (argc < 2 || runs < 1) {
    std::fprintf(stderr, "usage: sinter_time_steps MODEL.sinter [RUNS]\n");
    return 2;
  }
  sinter::device::cap_instruction_sets();
  const sinter::FileMap map = must(argv[1], sinter::FileMap::open(argv[1]));
  const sinter::OpenOptions options{.kernels = sinter::reference_kernels()};
  const size_t bytes = must(argv[1], sinter::Model::open_bytes(map.bytes(), options));
  const sinter::Model model = must(argv[1], sinter::Model::open(map.bytes(), take(bytes), options));
  std::vector<std::unique_ptr<Timed>> sessions;
  for (sinter::Backend* backend : sinter::default_backends())
    if (backend->memory() == nullptr) sessions.push_back(std::make_unique<Timed>(model, backend->name()));
  for (long run = 0; run < runs; ++run)
    for (const auto& timed : sessions) timed->once();
  std::printf("profile %s\n", model.profile_name(model.default_profile()));
  for (const auto& timed : sessions)
    for (const auto& [step, ns] : timed->lowest)
      std::printf("%u %u %s %.0f\n", step.first, step.second, timed->backend, ns);
  return 0;
}

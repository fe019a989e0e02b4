// sinter_time_ops: single operations on one backend and one thread, without a model. bench/kernel_times.py
// makes the platforms' kernel_times.def of it.
//
//     sinter_time_ops                          lists the representative calls: operation, class and case
//     sinter_time_ops all                      lists all cases: operation and case
//     sinter_time_ops OP CASE BACKEND RUNS     computes one of them; prints the lowest time of a run, in ns
//
// BACKEND may be "reference". 0 RUNS: what precedes a run.
//
// SINTER_CPU_CAP limits the instruction sets, as for the command line. Under an emulator that counts
// instructions, one run costs (count at 3 runs - count at 1) / 2. Status 3: the backend refuses the call, or
// the program does not have it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/device/op_cases.h"
#include "bench/device/setup.h"
#include "runtime/kernels/reference.h"

namespace {

using Clock = std::chrono::steady_clock;

int time_case(const sinter::bench::OpCase& c, sinter::Backend& backend, long runs) {
  const auto prepared = c.prepare(backend);
  if (prepared == nullptr) return 3;
  double lowest = 1e18;
  for (long i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    if (const sinter::Status status = prepared->run(); !status.ok())
      sinter::device::fail("the run failed", status);
    lowest = std::min(lowest, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  std::printf("%.0f\n", lowest);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  sinter::device::cap_instruction_sets();
  if (argc == 1) {
    for (const auto& r : sinter::bench::representatives())
      std::printf("%s\t%s\t%s\n", r.op_name, r.class_name, r.case_name);
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "all") == 0) {
    for (const auto& c : sinter::bench::op_cases())
      std::printf("%s\t%s\n", sinter::op_name(c.op), c.name.c_str());
    return 0;
  }
  if (argc != 5) {
    std::fprintf(stderr, "usage: sinter_time_ops [all | OP CASE BACKEND RUNS]\n");
    return 2;
  }
  for (const auto& c : sinter::bench::op_cases()) {
    if (std::strcmp(sinter::op_name(c.op), argv[1]) != 0 || c.name != argv[2]) continue;
    const long runs = std::max(0L, std::atol(argv[4]));
    for (sinter::Backend* backend : sinter::default_backends())
      if (std::strcmp(backend->name(), argv[3]) == 0) return time_case(c, *backend, runs);
    sinter::KernelBackend reference("reference", sinter::reference_kernels());
    if (std::strcmp(reference.name(), argv[3]) == 0) return time_case(c, reference, runs);
    return 3;
  }
  std::fprintf(stderr, "there is no case '%s' of %s\n", argv[2], argv[1]);
  return 2;
}

// Single operations on each backend, one thread, as Google Benchmark shows them. SINTER_CPU_CAP limits the
// instruction sets, as for the command line. The tables of costs are made of the same cases
// (bench/README.md).
//
//   sinter_bench --benchmark_filter='^op/' --benchmark_repetitions=5 --benchmark_report_aggregates_only
#include <benchmark/benchmark.h>

#include "bench/device/op_cases.h"
#include "bench/device/setup.h"
#include "runtime/core/op.h"
#include "sinter/backends.h"

namespace sinter::bench {
namespace {

const bool registered = [] {
  device::cap_instruction_sets();
  for (const OpCase& c : op_cases())
    for (Backend* backend : default_backends())
      benchmark::RegisterBenchmark(
          ("op/" + std::string(op_name(c.op)) + "/" + c.name + "/" + backend->name()).c_str(),
          [&c, backend](benchmark::State& state) {
            const auto prepared = c.prepare(*backend);
            if (prepared == nullptr) return state.SkipWithError("refused");
            for (auto _ : state)
              if (!prepared->run().ok()) return state.SkipWithError("failed");
          })
          ->MinTime(0.05);
  return true;
}();

}  // namespace
}  // namespace sinter::bench

// What one run() costs beside the arithmetic: a model of a single Relu on four floats.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <vector>

#include "sinter/sinter.h"

namespace {

// Bytes aligned as models and sessions want them.
class Block {
 public:
  explicit Block(size_t bytes) : storage_(bytes + sinter::kBufferAlignment) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    skip_ = (sinter::kBufferAlignment - address % sinter::kBufferAlignment) % sinter::kBufferAlignment;
  }
  std::span<std::byte> bytes() {
    return {storage_.data() + skip_, storage_.size() - sinter::kBufferAlignment};
  }

 private:
  std::vector<std::byte> storage_;
  size_t skip_;
};

void CallOverhead(benchmark::State& state) {
  std::ifstream stream(SINTER_BENCH_RELU, std::ios::binary);
  const std::vector<char> content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  Block file(content.size());
  std::copy_n(reinterpret_cast<const std::byte*>(content.data()), content.size(), file.bytes().data());
  const sinter::OpenOptions options{.kernels = sinter::reference_kernels()};
  auto model_bytes = sinter::Model::open_bytes(file.bytes(), options);
  if (!model_bytes.ok()) return state.SkipWithError("open_bytes failed");
  Block model_memory(*model_bytes);
  auto model = sinter::Model::open(file.bytes(), model_memory.bytes(), options);
  if (!model.ok()) return state.SkipWithError("open failed");
  auto need = sinter::Session::requirements(*model, {});
  if (!need.ok()) return state.SkipWithError("requirements failed");
  Block session_memory(need->bytes);
  auto session = sinter::Session::create(*model, session_memory.bytes(), {});
  if (!session.ok()) return state.SkipWithError("create failed");
  float* x = session->input("x").as<float>();
  const float* y = session->output("y").as<float>();
  for (auto _ : state) {
    x[0] = -1, x[1] = 2, x[2] = -3, x[3] = 4;
    if (!session->run().ok()) return state.SkipWithError("run failed");
    benchmark::ClobberMemory();
  }
  if (y[0] != 0 || y[1] != 2 || y[2] != 0 || y[3] != 4) state.SkipWithError("wrong result");
}
BENCHMARK(CallOverhead)->Repetitions(5)->ReportAggregatesOnly();

}  // namespace

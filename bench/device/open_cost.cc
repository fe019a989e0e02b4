// sinter_open_cost: what opening a model file costs, and how much of it is digests and the signature.
//
//     sinter_open_cost MODEL.sinter [RUNS]
//
// Times, median of RUNS (default 200), from the file's name to the opened model: with digests waived, with
// digests (and for a signed file its signature), with the signer's public key; then the creation of a session
// on top. The file is in the page cache, the mapping is new each time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/device/setup.h"
#include "runtime/model/format.h"
#include "sinter/file_map.h"

namespace {

using Clock = std::chrono::steady_clock;

using sinter::device::must;
using sinter::device::take;

template <class F>
double median_us(int runs, F&& f) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    f();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<size_t>(runs) / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 2 ? std::atoi(argv[2]) : 200;
  if (argc < 2 || runs < 1) {
    std::fprintf(stderr, "usage: sinter_open_cost MODEL.sinter [RUNS]\n");
    return 2;
  }
  const sinter::FileMap map = must(argv[1], sinter::FileMap::open(argv[1]));
  sinter::OpenOptions waived{.kernels = sinter::reference_kernels(), .check_digests = false};
  sinter::OpenOptions checked{.kernels = sinter::reference_kernels()};
  const std::span<std::byte> memory = take(must(argv[1], sinter::Model::open_bytes(map.bytes(), checked)));
  const auto open_with = [&](const sinter::OpenOptions& options) {
    return median_us(runs, [&] {
      const sinter::FileMap file = must(argv[1], sinter::FileMap::open(argv[1]));
      must(argv[1], sinter::Model::open(file.bytes(), memory, options));
    });
  };
  std::printf("file             %10zu bytes\n", map.bytes().size());
  std::printf("digests waived   %10.1f us\n", open_with(waived));
  std::printf("digests checked  %10.1f us\n", open_with(checked));
  const auto signature = sinter::format::read_signature(map.bytes());
  if (signature.ok()) {
    sinter::OpenOptions keyed = checked;
    keyed.public_key = signature.value().public_key;
    std::printf("with public key  %10.1f us\n", open_with(keyed));
  }

  const sinter::SessionOptions options{.backends = sinter::default_backends()};
  const sinter::Model model = must(argv[1], sinter::Model::open(map.bytes(), memory, checked));
  const std::span<std::byte> own = take(must(argv[1], sinter::Session::requirements(model, options)).bytes);
  std::printf("session created  %10.1f us\n", median_us(std::max(runs / 10, 3), [&] {
                must(argv[1], sinter::Session::create(model, own, options));
              }));
  return 0;
}

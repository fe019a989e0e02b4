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

using sinter::device::fail;
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
  const auto map = sinter::FileMap::open(argv[1]);
  if (!map.ok()) fail(argv[1], map.status());
  sinter::OpenOptions waived{.kernels = sinter::reference_kernels(), .check_digests = false};
  sinter::OpenOptions checked{.kernels = sinter::reference_kernels()};
  const auto bytes = sinter::Model::open_bytes(map.value().bytes(), checked);
  if (!bytes.ok()) fail(argv[1], bytes.status());
  const std::span<std::byte> memory = take(bytes.value());
  const auto open_with = [&](const sinter::OpenOptions& options) {
    return median_us(runs, [&] {
      const auto file = sinter::FileMap::open(argv[1]);
      if (!file.ok()) fail(argv[1], file.status());
      const auto model = sinter::Model::open(file.value().bytes(), memory, options);
      if (!model.ok()) fail(argv[1], model.status());
    });
  };
  std::printf("file             %10zu bytes\n", map.value().bytes().size());
  std::printf("digests waived   %10.1f us\n", open_with(waived));
  std::printf("digests checked  %10.1f us\n", open_with(checked));
  const auto signature = sinter::format::read_signature(map.value().bytes());
  if (signature.ok()) {
    sinter::OpenOptions keyed = checked;
    keyed.public_key = signature.value().public_key;
    std::printf("with public key  %10.1f us\n", open_with(keyed));
  }

  const sinter::SessionOptions options{.backends = sinter::all_backends()};
  const auto model = sinter::Model::open(map.value().bytes(), memory, checked);
  if (!model.ok()) fail(argv[1], model.status());
  const auto need = sinter::Session::requirements(model.value(), options);
  if (!need.ok()) fail(argv[1], need.status());
  const std::span<std::byte> own = take(need.value().bytes);
  std::printf("session created  %10.1f us\n", median_us(std::max(runs / 10, 3), [&] {
                const auto session = sinter::Session::create(model.value(), own, options);
                if (!session.ok()) fail(argv[1], session.status());
              }));
  return 0;
}

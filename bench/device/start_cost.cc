// sinter_start_cost: what it takes from a file's name to results, and the memory that stays in use.
//
//     sinter_start_cost MODEL.sinter [THREADS] [RUNS]
//
// Prints one line of JSON: seconds on the clock to open the file and to create a session, until the first
// result (these included; also in seconds of the processor), then the fastest of RUNS runs (default 5), and
// the resident memory after them: anonymous, and of files (RssAnon and RssFile of /proc/self/status). Inputs
// are zeros.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "bench/device/setup.h"
#include "sinter/file_map.h"
#include "sinter/thread_pool.h"

namespace {

using Clock = std::chrono::steady_clock;
using sinter::device::must;
using sinter::device::take;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of all threads.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Bytes of a line such as "RssAnon:   1234 kB"; 0 where the system has none.
long long status_bytes(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  long long kilobytes = 0;
  const size_t length = std::strlen(key);
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, key, length) == 0) kilobytes = std::strtoll(line + length, nullptr, 10);
  std::fclose(file);
  return kilobytes * 1024;
}

void run(const char* name, sinter::Session& session) {
  if (const sinter::Status status = session.run(); !status.ok()) sinter::device::fail(name, status);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1, runs = argc > 3 ? std::atoi(argv[3]) : 5;
  if (argc < 2 || threads < 1 || runs < 1) {
    std::fprintf(stderr, "usage: sinter_start_cost MODEL.sinter [THREADS] [RUNS]\n");
    return 2;
  }
  sinter::device::cap_instruction_sets();
  const double processor_start = processor_seconds();
  const auto start = Clock::now();
  const sinter::FileMap map = must(argv[1], sinter::FileMap::open(argv[1]));
  const sinter::OpenOptions open{.kernels = sinter::reference_kernels()};
  const std::span<std::byte> memory = take(must(argv[1], sinter::Model::open_bytes(map.bytes(), open)));
  const sinter::Model model = must(argv[1], sinter::Model::open(map.bytes(), memory, open));
  const double opened = seconds_since(start);
  sinter::PthreadPool pool(threads);
  const sinter::SessionOptions options{
      .backends = sinter::default_backends(), .threads = &pool, .packed_in_file = sinter::packed_in_file()};
  const std::span<std::byte> own = take(must(argv[1], sinter::Session::requirements(model, options)).bytes);
  sinter::Session session = must(argv[1], sinter::Session::create(model, own, options));
  for (uint32_t i = 0; i < model.input_count(); ++i) {
    const sinter::TensorView input = session.input(i);
    std::memset(input.data, 0, static_cast<size_t>(input.dense_bytes()));
  }
  const double loaded = seconds_since(start);
  run(argv[1], session);
  const double first = seconds_since(start), processor = processor_seconds() - processor_start;
  double best = first - loaded;
  for (int i = 1; i < runs; ++i) {
    const auto begin = Clock::now();
    run(argv[1], session);
    best = std::min(best, seconds_since(begin));
  }
  std::printf(
      "{\"file_bytes\": %zu, \"session_bytes\": %zu, \"open_seconds\": %.4f, \"load_seconds\": %.4f, "
      "\"first_result_seconds\": %.4f, \"first_result_processor_seconds\": %.4f, \"run_seconds\": %.6f, "
      "\"resident_anonymous\": %lld, "
      "\"resident_file\": %lld}\n",
      map.bytes().size(), own.size(), opened, loaded, first, processor, best, status_bytes("RssAnon:"),
      status_bytes("RssFile:"));
  return 0;
}

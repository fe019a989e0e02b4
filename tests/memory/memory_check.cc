// memory_check FILE.sinter [--inputs FILE] [--runs N] [--seconds S] [--attempts N] [--slow S]
//
// Checks the guarantees about memory (promises.h) on a file, on every backend with one thread and with two.
// Inputs: for each array "BYTES NAME\n" and the bytes; without them, harmless numbers. At most N runs, for S
// seconds at most, of each way to compute; "settled": another would repeat the last one. Prints a line
// each; exit code 1 if something is wrong.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "sinter/file_map.h"
#include "tests/memory/backends.h"
#include "tests/memory/watch.h"

namespace sinter::test {
namespace {

bool read_inputs(const char* path, const Model& model, std::vector<Bytes>* inputs) {
  std::ifstream file(path, std::ios::binary);
  std::string name;
  size_t bytes = 0;
  while ((file >> bytes) && file.get() == ' ' && std::getline(file, name)) {
    Bytes data(bytes);
    file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(bytes));
    const int i = model.find_input(name.c_str());
    if (i >= 0 && (*inputs)[static_cast<size_t>(i)].size() == bytes) (*inputs)[static_cast<size_t>(i)] = data;
  }
  return file.eof();
}

constexpr size_t kFewAttempts = 4;

// For models.py: "needs BACKEND THREADS BYTES".
void state_needs(const Use& use) {
  auto needs = Session::requirements(use.model, use.options);
  const ThreadPool* threads = use.options.threads;
  std::printf("needs %s %d %zu\n", use.options.backend != nullptr ? use.options.backend : "planned",
              threads != nullptr ? threads->thread_count() : 1, needs.ok() ? needs->bytes : 0);
}

int check_file(const char* path, const char* inputs_path, int runs, double seconds, size_t attempts,
               double slow) {
  auto map = FileMap::open(path);
  if (!map.ok()) return std::fprintf(stderr, "memory_check: %s cannot be read\n", path), 1;
  const OpenedFile opened(map->bytes());
  if (!opened.status().ok()) return std::fprintf(stderr, "memory_check: %s is not a model\n", path), 1;
  std::vector<Bytes> inputs = harmless_inputs(opened.model());
  if (inputs_path != nullptr && !read_inputs(inputs_path, opened.model(), &inputs))
    return std::fprintf(stderr, "memory_check: %s cannot be read\n", inputs_path), 1;
  bool right = true;
  const auto say = [&](const std::string& what, const Finding& f) {
    right &= f.empty();
    std::printf("%-4s %s%s%s\n", f.empty() ? "ok" : "FAIL", what.c_str(), f.empty() ? "" : ": ", f.c_str());
    std::fflush(stdout);
  };
  say("opening", check_opening(map->bytes()));
  Backends backends;
  std::vector<const char*> left;  // too slow to be run often
  for (const Use& use : backends.uses(opened.model(), inputs)) {
    Runs ran;
    const auto start = std::chrono::steady_clock::now();
    const Finding f = check_untouched(use, runs, seconds, &ran);
    say("untouched (" + use.name + ", " + std::to_string(ran.made) + " runs" +
            (ran.settled ? ", settled" : "") + ")",
        f);
    if (!use.alone || ran.made == 0) continue;
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / (ran.made + 1);
    if (took > slow) {
      std::printf("left dead memory and creation (%s): a run takes %.1f s\n", use.name.c_str(), took);
      left.push_back(use.options.backend);
      state_needs(use);
      continue;
    }
    say("dead memory (" + use.name + ")", check_dead_memory(use));
    say("creation (" + use.name + ")", check_creation(use, attempts));
    say("packed weights (" + use.name + ")", check_packed(use, kFewAttempts));
    if (use.options.devices.empty()) say("shared arena (" + use.name + ")", check_shared_arena(use));
    state_needs(use);
  }
  for (const Use& use : backends.crowded(opened.model(), inputs)) {
    if (std::find(left.begin(), left.end(), use.options.backend) == left.end())
      say("creation (" + use.name + ")", check_creation(use, kFewAttempts));
    state_needs(use);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace sinter::test

int main(int argc, char** argv) {
  const char* inputs = nullptr;
  int runs = sinter::test::watched_runs(20);
  double seconds = 1;
  double slow = 0.1;
  size_t attempts = 200;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--inputs") inputs = argv[i + 1];
    if (flag == "--runs") runs = std::atoi(argv[i + 1]);
    if (flag == "--seconds") seconds = std::atof(argv[i + 1]);
    if (flag == "--slow") slow = std::atof(argv[i + 1]);
    if (flag == "--attempts") attempts = std::strtoull(argv[i + 1], nullptr, 10);
  }
  if (argc < 2) return std::fprintf(stderr, "usage: memory_check FILE.sinter [--inputs FILE]...\n"), 2;
  return sinter::test::check_file(argv[1], inputs, runs, seconds, attempts, slow);
}

// Offset assignment on instances in files: lines "id,first,past-the-last,size" after one of headings; the
// capacity is in the file's name (A.1048576.csv), --minimum finds the smallest arrangement instead. One JSON
// object a file.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "converter/plan/offsets.h"

namespace {

using sinter::convert::MemoryBlock;
using sinter::convert::OffsetOptions;
using sinter::convert::OffsetResult;

std::vector<MemoryBlock> read_instance(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("cannot read " + path.string());
  std::vector<MemoryBlock> blocks;
  while (std::getline(file, line)) {
    long long id = 0, first = 0, past = 0, bytes = 0;
    if (line.empty()) continue;
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%lld", &id, &first, &past, &bytes) != 4 || first < 0 ||
        past <= first || past > INT32_MAX || bytes < 0)
      throw std::runtime_error(path.string() + ": not a block: " + line);
    blocks.push_back({static_cast<uint64_t>(bytes), static_cast<int>(first), static_cast<int>(past - 1), 0});
  }
  return blocks;
}

bool solve(const std::filesystem::path& path, OffsetOptions options, bool least) {
  std::vector<MemoryBlock> blocks = read_instance(path);
  const uint64_t capacity = std::strtoull(path.stem().extension().string().c_str() + 1, nullptr, 10);
  if (!least) options.capacity = capacity;
  const auto start = std::chrono::steady_clock::now();
  const OffsetResult r = sinter::convert::assign_offsets(blocks, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool valid = sinter::convert::offsets_valid(blocks, options.alignment);
  const bool fits = valid && (least || r.bytes <= capacity);
  std::printf(
      "{\"file\": \"%s\", \"blocks\": %zu, \"capacity\": %llu, \"bytes\": %llu, \"live\": %llu, "
      "\"bound\": %llu, \"nodes\": %llu, \"proved\": %s, \"valid\": %s, \"seconds\": %.3f}\n",
      path.filename().c_str(), blocks.size(), static_cast<unsigned long long>(capacity),
      static_cast<unsigned long long>(r.bytes),
      static_cast<unsigned long long>(sinter::convert::memory_lower_bound(blocks, options.alignment)),
      static_cast<unsigned long long>(r.lower_bound), static_cast<unsigned long long>(r.nodes),
      r.proved ? "true" : "false", valid ? "true" : "false", seconds);
  std::fflush(stdout);
  return fits;
}

int run(int argc, char** argv) {
  OffsetOptions options{.alignment = 1, .max_nodes = 2000000};
  bool least = false, all = true;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--minimum") {
      least = true;
    } else if (arg == "--nodes" && i + 1 < argc) {
      options.max_nodes = std::strtoull(argv[++i], nullptr, 10);
    } else if (arg == "--seconds" && i + 1 < argc) {
      options.max_seconds = std::atof(argv[++i]);
    } else {
      all &= solve(arg, options, least), ++files;
    }
  }
  if (files > 0) return all ? 0 : 1;
  std::fputs("usage: bench_offsets [--nodes N] [--seconds S] [--minimum] NAME.CAPACITY.csv...\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

// Calls the function that README.md shows (extracted to example.h) on a drawn two, and prints that class's
// probability, and on an image of the wrong size. Built by applications.sh alone.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "example.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream stream(argv[1], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  constexpr size_t kMemory = size_t{1} << 20;
  std::vector<std::byte> block(bytes.size() + kMemory + 128);
  auto* base = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(block.data()) + 63) / 64 * 64);
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), base);
  const std::span<std::byte> memory(base + (bytes.size() + 63) / 64 * 64, kMemory);
  constexpr float kTwo[64] = {
      0, 2, 15, 16, 12, 0,  0, 0,  //
      0, 8, 11, 8,  16, 0,  0, 0,  //
      0, 3, 1,  7,  13, 0,  0, 0,  //
      0, 0, 0,  10, 8,  0,  0, 0,  //
      0, 0, 0,  15, 5,  0,  0, 0,  //
      0, 0, 7,  15, 0,  0,  0, 0,  //
      0, 0, 14, 11, 6,  5,  2, 0,  //
      0, 1, 16, 16, 16, 16, 9, 0,  //
  };
  float probabilities[10] = {};
  const sinter::Status status = classify({base, bytes.size()}, memory, kTwo, probabilities);
  if (!status.ok()) {
    char text[512];
    sinter::format_status(status, text);
    std::fprintf(stderr, "%s\n", text);
    return 1;
  }
  // An image of another size is refused, not read beyond its end.
  if (classify({base, bytes.size()}, memory, std::span(kTwo).first(63), probabilities).ok()) {
    std::fprintf(stderr, "an image of 63 pixels is accepted\n");
    return 1;
  }
  std::printf("%.4f\n", probabilities[2]);
  return 0;
}

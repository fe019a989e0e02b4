// Calls the functions that README.md and docs/application.md show (extracted to runner_example.h,
// session_example.h and c_example.h) on a drawn two, and on images of the wrong size. Prints that class's
// probability by Session and in C, and the best class by Runner. Built by applications.sh alone, run where
// digits.sinter is.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "sinter/backends.h"
#include "sinter/sinter.h"
//
#include "runner_example.h"
#include "session_example.h"

extern "C" float probability_in_c(const float* image);

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
  if (best_class(argv[1], std::span(kTwo).first(63)) != -1 || best_class("nothing.sinter", kTwo) != -1) {
    std::fprintf(stderr, "Runner accepts what is wrong\n");
    return 1;
  }
  std::printf("%.4f %.4f %d\n", probabilities[2], probability_in_c(kTwo), best_class(argv[1], kTwo));
  return 0;
}

// signed SIGNED.sinter KEY.pub UNSIGNED.sinter: with the key, the first file opens; the second, and the first
// with a byte changed, do not. Built by cross.sh alone.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sinter/sinter.h"

namespace {

std::vector<char> read(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

sinter::Status open(const std::vector<char>& file, std::span<const uint8_t> key) {
  static std::byte block[1 << 20], memory[1 << 20];
  auto* base = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(block) + 63) / 64 * 64);
  auto* arena = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory) + 63) / 64 * 64);
  if (file.empty() || file.size() > (1 << 19)) return sinter::invalid("no file of a fitting size");
  for (size_t i = 0; i < file.size(); ++i) base[i] = static_cast<std::byte>(file[i]);
  const sinter::OpenOptions options{.kernels = sinter::reference_kernels(), .public_key = key};
  return sinter::Model::open({base, file.size()}, {arena, 1 << 19}, options).status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::vector<char> key_file = read(argv[2]), plain = read(argv[3]);
  std::vector<char> file = read(argv[1]);
  // The last word of the file's text is the key in hexadecimal digits.
  std::string text(key_file.begin(), key_file.end());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() < 64) return 2;
  std::vector<uint8_t> key(32);
  for (size_t i = 0; i < 32; ++i)
    key[i] = static_cast<uint8_t>(std::stoi(text.substr(text.size() - 64 + 2 * i, 2), nullptr, 16));
  const sinter::Status opened = open(file, key);
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
  const bool changed = open(file, key).ok(), unsigned_file = open(plain, key).ok();
  std::printf("signed: %s, changed: %s, unsigned: %s\n", opened.ok() ? "opens" : opened.message,
              changed ? "opens" : "refused", unsigned_file ? "opens" : "refused");
  return opened.ok() && !changed && !unsigned_file ? 0 : 1;
}

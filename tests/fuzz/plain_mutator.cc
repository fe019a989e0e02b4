// Byte mutations for builds without libFuzzer.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/targets.h"

namespace sinter::fuzz {

ByteMutator plain_mutator(Random& r) {
  return [&r](Blob* bytes, size_t most) {
    for (uint64_t n = 1 + r.below(3); n > 0; --n) {
      if (bytes->empty()) bytes->push_back(0);
      const size_t at = r.index(bytes->size());
      const auto here = bytes->begin() + static_cast<ptrdiff_t>(at);
      switch (r.below(6)) {
        case 0:
          (*bytes)[at] = static_cast<uint8_t>((*bytes)[at] ^ (1u << r.below(8)));
          break;
        case 1:
          (*bytes)[at] = static_cast<uint8_t>(r.next());
          break;
        case 2: {
          const int64_t sharp = r.pick(kSharpInts);
          std::memcpy(&(*bytes)[at], &sharp, std::min<size_t>(bytes->size() - at, size_t{1} << r.below(4)));
          break;
        }
        case 3:
          bytes->erase(here,
                       here + static_cast<ptrdiff_t>(std::min<size_t>(bytes->size() - at, 1 + r.below(16))));
          break;
        case 4:
          bytes->insert(here, 1 + r.below(8), static_cast<uint8_t>(r.next()));
          break;
        default:
          bytes->resize(at);
      }
    }
    if (bytes->size() > most) bytes->resize(most);
  };
}

}  // namespace sinter::fuzz

// The last uses of each byte of a memory. A word of 4 bytes has one entry while it is used as a whole, which
// most accesses do: an entry is four times as long as the word.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "platforms/cuda/emulator/order.h"

namespace sinter::cuda::emulator {

struct ByteUses {
  static constexpr size_t kWord = 4;

  Uses* words = nullptr;     // [bytes / 4], for words that are not split
  Uses* bytes = nullptr;     // [bytes], for the bytes of words that are
  uint8_t* split = nullptr;  // [bytes / 4], 0 or 1

  // Calls `access`, a function of Uses& that returns a Conflict, for each entry of the bytes from `at` to
  // `end`, up to the first one that is not null, which it returns.
  template <class Access>
  Conflict each(size_t at, size_t end, Access access) const {
    while (at < end) {
      const size_t word = at / kWord, next = (word + 1) * kWord;
      const bool whole = at % kWord == 0 && next <= end;
      if (split[word] == 0 && whole) {
        if (Conflict m = access(words[word])) return m;
        at = next;
        continue;
      }
      if (split[word] == 0) part(word);
      for (const size_t stop = std::min(next, end); at < stop; ++at)
        if (Conflict m = access(bytes[at])) return m;
      if (whole) join(word);
    }
    return nullptr;
  }

 private:
  void part(size_t word) const {
    std::fill_n(bytes + word * kWord, kWord, words[word]);
    split[word] = 1;
  }
  void join(size_t word) const {
    const Uses* const all = bytes + word * kWord;
    if (!std::all_of(all + 1, all + kWord, [&](const Uses& u) { return order.same(u, all[0]); })) return;
    words[word] = all[0];
    split[word] = 0;
  }
};

}  // namespace sinter::cuda::emulator

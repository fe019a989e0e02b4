#include "platforms/simd/fused.h"

namespace sinter::simd {
namespace {

// Elements that stay in the first cache, with those of the operands, from one step to the next.
constexpr int64_t kBlock = 2048;
// Enough of them to outweigh handing a piece to a thread.
constexpr int64_t kGrain = 8192;

struct Range {
  uintptr_t begin, end;
  Range(const float* at, int64_t count)
      : begin(reinterpret_cast<uintptr_t>(at)), end(begin + static_cast<uintptr_t>(count) * sizeof(float)) {}
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};
Range result_of(const Piece& p) { return {p.y, p.size}; }

// Writing y, element by element in order, leaves this operand as it is until it has been read.
bool keeps(const Range& y, const float* operand, int64_t operand_size, int64_t size) {
  if (operand == nullptr) return true;
  const Range read(operand, operand_size);
  return !y.meets(read) || (operand_size == size && read.begin == y.begin);
}
bool keeps(const Range& y, const Piece& p) {
  return keeps(y, p.a, p.a_size, p.size) && keeps(y, p.b, p.b_size, p.size);
}
bool reads(const Piece& p, const float* value) {
  return (p.a == value && p.a_size == p.size) || (p.b == value && p.b_size == p.size);
}

}  // namespace

bool fuse_pieces(Piece* first, Piece* next) {
  const Range y = result_of(*next);
  bool reads_one = false;
  Piece* last = first;
  for (Piece* p = first; p != nullptr; p = const_cast<Piece*>(p->next)) {
    const Range other = result_of(*p);
    const bool apart = !other.meets(y) || other.begin == y.begin;
    if (p->size != next->size || !apart || !keeps(y, *p) || !keeps(other, *next)) return false;
    reads_one |= reads(*next, p->y);
    last = p;
  }
  if (!reads_one) return false;
  last->next = next;
  return true;
}

void run_pieces(const Piece& first, ThreadPool* threads) {
  parallel_for(threads, first.size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kBlock)
      for (const Piece* p = &first; p != nullptr; p = p->next) p->compute(*p, at, std::min(kBlock, end - at));
  });
}

}  // namespace sinter::simd

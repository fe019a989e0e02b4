#include "platforms/simd/float/fused.h"

#include "runtime/core/byte_range.h"

namespace sinter::simd {
namespace {

// The elements that stay in the first cache, with those of the operands, from one step to the next.
constexpr int64_t kBlock = 2048;
// The elements that outweigh handing a piece to a thread.
constexpr int64_t kGrain = 8192;
// The most pieces of a walk: longer chains gain nothing, and each new piece is compared with all others.
constexpr int kMostPieces = 64;

ByteRange floats(const float* at, int64_t count) { return {at, static_cast<size_t>(count) * sizeof(float)}; }

// Returns whether writing y, element by element in order, leaves this operand as it is until it is read.
bool keeps(const ByteRange& y, const float* operand, int64_t operand_size, int64_t size) {
  if (operand == nullptr) return true;
  const ByteRange read = floats(operand, operand_size);
  return !y.overlaps(read) || (operand_size == size && read.begin == y.begin);
}
bool keeps(const ByteRange& y, const Piece& p) {
  return keeps(y, p.a, p.a_size, p.size) && keeps(y, p.b, p.b_size, p.size);
}
bool reads(const Piece& p, const float* value) {
  return (p.a == value && p.a_size == p.size) || (p.b == value && p.b_size == p.size);
}

}  // namespace

bool fuse_pieces(Piece* first, Piece* next) {
  const ByteRange y = floats(next->y, next->size);
  bool reads_one = false;
  Piece* last = first;
  int pieces = 0;
  for (Piece* p = first; p != nullptr; p = p->next) {
    if (++pieces == kMostPieces) return false;
    const ByteRange other = floats(p->y, p->size);
    const bool apart = !other.overlaps(y) || other.begin == y.begin;
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

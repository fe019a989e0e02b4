#include "platforms/onednn/planning/workspace.h"

#include <algorithm>

namespace sinter::onednn {
namespace {

// The library places each table at a page.
constexpr size_t kPage = 4096;
// A table of operands has for each tap an entry of 32 bytes, in at most two blocks of input channels.
constexpr size_t kTapBytes = 64;

// Counts two tables of int32 for each way in which the padding above and below may cut off a window, at each
// column of results.
size_t sums_of_weights(const WindowGeometry& g) {
  if (g.pad[1] + g.end_pad[1] + g.pad[2] + g.end_pad[2] == 0) return 0;
  constexpr size_t kBlock = 64;  // channels
  const int64_t ways = 1 + g.pad[1] + g.end_pad[1];
  return static_cast<size_t>(2 * ways * g.out[2]) * align_up(static_cast<size_t>(g.out_channels), kBlock) *
         sizeof(int32_t);
}

// Counts, for a product of bfloat16, the float32 sums of a block of rows and columns.
size_t block_of_sums(const Problem& p) {
  constexpr int64_t kRows = 64, kColumns = 64;
  return kParts * align_up(static_cast<size_t>(std::min(p.rows, kRows) * kColumns) * sizeof(float), kPage);
}

}  // namespace

size_t workspace_bound(const Problem& p) {
  const size_t taps = p.convolution ? static_cast<size_t>(p.window.taps()) : 1;
  const size_t bytes = kRunMemory + 2 * kPage + kParts * align_up(taps * kTapBytes, kPage);
  if (p.bfloat16 && !p.convolution) return bytes + block_of_sums(p);
  return p.integer ? bytes + 3 * kPage + sums_of_weights(p.window) : bytes;
}

}  // namespace sinter::onednn

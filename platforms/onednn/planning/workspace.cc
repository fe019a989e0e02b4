#include "platforms/onednn/planning/workspace.h"

namespace sinter::onednn {
namespace {

// The library places each table at a page.
constexpr size_t kPage = 4096;
// Of a table of operands: for each tap an entry of 32 bytes, in at most two blocks of input channels.
constexpr size_t kTapBytes = 64;

}  // namespace

size_t workspace_bound(const Problem& p) {
  const size_t taps = p.convolution ? static_cast<size_t>(p.window.taps()) : 1;
  return kRunMemory + 2 * kPage + kParts * align_up(taps * kTapBytes, kPage);
}

}  // namespace sinter::onednn

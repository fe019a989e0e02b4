// Constants that are kept out of memory: their bytes stay the same wherever they are.
#include "converter/ir/large_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {
namespace {

constexpr size_t kBytes = 16 << 20;

Bytes numbered(size_t seed) {
  Bytes bytes(kBytes);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((i * 31 + seed * 7 + (i >> 12)) & 255);
  return bytes;
}

TEST(LargeBytes, ResultsBeyondTheLimitAreReadBackUnchanged) {
  const uint64_t before = kept_constant_bytes();
  std::vector<ConstantPtr> kept;
  for (size_t i = 0; i < kHeldBytes / kBytes + 3; ++i)
    kept.push_back(Constant::owned(DType::kUint8, {static_cast<int64_t>(kBytes)}, numbered(i)));
  EXPECT_EQ(kept_constant_bytes() - before, kept.size() * kBytes);
  for (const size_t i : {size_t{0}, kept.size() - 2, kept.size() - 1})
    for (int again = 0; again < 2; ++again) {
      const LoadedBytes loaded = kept[i]->load();
      const Bytes wanted = numbered(i);
      EXPECT_TRUE(std::equal(loaded.bytes.begin(), loaded.bytes.end(), wanted.begin(), wanted.end())) << i;
    }
  kept.clear();
  EXPECT_EQ(kept_constant_bytes(), before);
}

TEST(LargeBytes, OnlyPagesOfRegisteredFilesAreGivenBack) {
  Bytes bytes = numbered(3);
  release_file_pages(bytes);  // memory of the heap would be zeros now
  EXPECT_EQ(bytes, numbered(3));
  const auto owner = std::make_shared<int>(1);
  EXPECT_EQ(reader_of(owner, bytes), owner);
}

}  // namespace
}  // namespace sinter::convert

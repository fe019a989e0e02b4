// Constants that are kept out of memory: their bytes stay the same wherever they are.
#include "converter/ir/large_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "converter/ir/assembled_bytes.h"
#include "converter/ir/constant.h"
#include "converter/ir/resident_limit.h"

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

TEST(LargeBytes, LargeResultsAreNeverInMemoryAsAWhole) {
  const uint64_t before = kept_constant_bytes();
  for (const size_t bytes : {size_t{0}, kBytes, kMappedResultBytes}) {
    ResultBytes result(bytes);
    const std::span<std::byte> span = result.span();
    ASSERT_EQ(span.size(), bytes);
    EXPECT_EQ(bytes > 0 && begins_at_page(span), bytes == kMappedResultBytes);
    EXPECT_TRUE(std::all_of(span.begin(), span.end(), [](std::byte b) { return b == std::byte{0}; }));
    const Bytes wanted = numbered(7);
    const size_t count = std::min(bytes, wanted.size());
    std::copy_n(wanted.begin(), count, span.begin());
    release_all_file_pages();
    const HeldBytes held = std::move(result).hold();
    EXPECT_EQ(kept_constant_bytes() - before, bytes);
    ASSERT_EQ(held.bytes.size(), bytes);
    EXPECT_TRUE(
        std::equal(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(count), held.bytes.begin()));
  }
  EXPECT_EQ(kept_constant_bytes(), before);
  const HeldBytes lent = ResultBytes(kMappedResultBytes).lend();
  EXPECT_EQ(lent.bytes.size(), kMappedResultBytes);
  EXPECT_EQ(lent.bytes.back(), std::byte{0});
  EXPECT_EQ(kept_constant_bytes(), before);
}

TEST(LargeBytes, OnlyPagesOfRegisteredFilesAreGivenBack) {
  Bytes bytes = numbered(3);
  release_file_pages(bytes);  // memory of the heap would be zeros now
  EXPECT_EQ(bytes, numbered(3));
  const auto owner = std::make_shared<int>(1);
  EXPECT_EQ(reader_of(owner, bytes), owner);
}

TEST(LargeBytes, PagesAreMappedAgain) {
  const Bytes bytes = numbered(5);
  std::optional<HeldBytes> held = copy_to_pages(bytes);
  ASSERT_TRUE(held);
  EXPECT_TRUE(begins_at_page(held->bytes));
  EXPECT_FALSE(begins_at_page(held->bytes.subspan(64)));
  EXPECT_FALSE(begins_at_page(bytes));
  AssembledBytes assembled(3 * kBytes);
  assembled.put_pages(0, bytes);
  const size_t before = resident_file_bytes();
  assembled.put_pages(kBytes, held->bytes);
  const std::span<std::byte> rest = assembled.write(2 * kBytes + 100, 7);
  std::fill(rest.begin(), rest.end(), std::byte{9});
  EXPECT_LT(resident_file_bytes(), before + kBytes / 2);  // nothing was read for it
  held.reset();
  for (int again = 0; again < 2; ++again, release_all_file_pages())
    for (const size_t at : {size_t{0}, kBytes})
      EXPECT_TRUE(
          std::equal(bytes.begin(), bytes.end(), assembled.span().begin() + static_cast<std::ptrdiff_t>(at)));
  EXPECT_EQ(assembled.span()[2 * kBytes + 100], std::byte{9});
  EXPECT_EQ(assembled.span()[2 * kBytes + 107], std::byte{0});
}

}  // namespace
}  // namespace sinter::convert

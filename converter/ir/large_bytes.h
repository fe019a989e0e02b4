// Keeps the bytes of large constants out of memory while nothing reads them, so that a conversion needs
// memory for the weight that it works on and not for the model.
//
// - Pages of mapped files are released when the last reader of a constant is done; the next one maps them
//   again.
// - What folding computes goes to a file without a name in the temporary folder, and is mapped from there,
//   once kHeldBytes of such results are in memory. Where that file cannot be written it stays in memory.
// - Results of kMappedResultBytes are written into such a file from the start.
// - Runs of a large model read all of it: resident_limit.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sinter::convert {

// Smaller constants are left alone.
inline constexpr size_t kLargeConstantBytes = 256 << 10;
// Results of folding that are held in memory, together, before further ones go to a file.
inline constexpr size_t kHeldBytes = size_t{256} << 20;
// Larger results are never in memory as a whole.
inline constexpr size_t kMappedResultBytes = size_t{64} << 20;

// Registers a read-only or shared mapping of a file as one whose pages may be released at any time.
// forget_file_pages() comes before it is unmapped.
void register_file_pages(std::span<const std::byte> mapping);
void forget_file_pages(std::span<const std::byte> mapping);
// Releases the pages of these bytes; does nothing where they are not in a registered mapping.
void release_file_pages(std::span<const std::byte> bytes);

// Of the system, in bytes: a power of 2.
size_t page_bytes();
// Whether these bytes begin at a page of a registered mapping.
bool begins_at_page(std::span<const std::byte> bytes);
// Maps the pages of such bytes at `at`, a page of an address range that is the caller's, in place of what is
// there: a second view of the file, which outlives the first one and is to be registered by itself. False:
// the system cannot, and nothing is changed.
bool map_pages_again(std::span<const std::byte> bytes, std::byte* at);

// `owner`, or, for large bytes in a registered mapping, an owner that releases their pages when it goes.
std::shared_ptr<const void> reader_of(std::shared_ptr<const void> owner, std::span<const std::byte> bytes);

// Bytes and what keeps them alive.
struct HeldBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};
// Takes the bytes over, in memory or in a file.
HeldBytes hold_bytes(std::vector<std::byte> bytes);

// A copy of the bytes that begins at a page of a file; nullopt: the temporary folder has no room for it.
std::optional<HeldBytes> copy_to_pages(std::span<const std::byte> bytes);

// Memory behind which is a file without a name: its pages may be released as well, and are read again. For
// what a run needs in turn, such as packed weights.
class FileMemory {
 public:
  FileMemory() = default;
  // Zeros, which have their place on the disk; empty: the temporary folder has none for them.
  explicit FileMemory(size_t bytes);
  std::span<std::byte> span() const { return bytes_; }

 private:
  std::shared_ptr<void> mapping_;
  std::span<std::byte> bytes_;
};

// Memory for a result, of zeros, with kReadPadding bytes behind it.
class ResultBytes {
 public:
  explicit ResultBytes(size_t bytes);
  std::span<std::byte> span() {
    return std::span(file_.span().empty() ? std::span<std::byte>(memory_) : file_.span()).first(bytes_);
  }
  // The result, as it is now, as hold_bytes() takes it; ends the use of this object.
  HeldBytes hold() &&;
  // The same for one reader: it is not counted.
  HeldBytes lend() &&;

 private:
  size_t bytes_;
  FileMemory file_;
  std::vector<std::byte> memory_;
};

// Releases the pages of all registered mappings, those of FileMemory as well. What is being read is mapped
// again.
void release_all_file_pages();

// Bytes that hold_bytes() has taken on this thread so far, with those that are to be computed when they are
// read (count_as_computed), and those of the former, on any thread, that are still there.
uint64_t computed_constant_bytes();
void count_as_computed(uint64_t bytes);
uint64_t kept_constant_bytes();

// While one lives, this thread's results stay in memory: for what is computed to be read once.
class InMemoryScope {
 public:
  InMemoryScope();
  ~InMemoryScope();
  InMemoryScope(const InMemoryScope&) = delete;
  InMemoryScope& operator=(const InMemoryScope&) = delete;
};

}  // namespace sinter::convert

// Bytes of large constants that are not in memory while nothing reads them, so that a conversion needs memory
// for the weight that it works on and not for the model.
//
// - Pages of mapped files are released when the last reader of a constant is done; the next one maps them
//   again.
// - Results of folding go to a file without a name in the temporary folder, and are mapped from there, once
//   kHeldBytes of such results are in memory. Where that file cannot be written they stay in memory.
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

// The size of a large constant; smaller ones are left alone.
inline constexpr size_t kLargeConstantBytes = 256 << 10;
// The bytes of all results of folding in memory beyond which further ones go to a file.
inline constexpr size_t kHeldBytes = size_t{256} << 20;
// The size of results that are never in memory as a whole.
inline constexpr size_t kMappedResultBytes = size_t{64} << 20;

// Registers a read-only or shared mapping of a file, whose pages may then be released at any time.
// forget_file_pages() must be called before it is unmapped.
void register_file_pages(std::span<const std::byte> mapping);
void forget_file_pages(std::span<const std::byte> mapping);
// Releases the pages of these bytes; does nothing where they are not in a registered mapping.
void release_file_pages(std::span<const std::byte> bytes);

// Returns the system's bytes of a page, a power of 2.
size_t page_bytes();
// Whether these bytes begin at a page of a registered mapping.
bool begins_at_page(std::span<const std::byte> bytes);
// Maps the pages of such bytes at `at`, a page of an address range of the caller, in place of its content, as
// a second view of the file, which outlives the first one and has to be registered by itself. Returns false
// if the system cannot, and changes nothing then.
bool map_pages_again(std::span<const std::byte> bytes, std::byte* at);

// Returns `owner`, or, for large bytes in a registered mapping, one that releases their pages at its end.
std::shared_ptr<const void> reader_of(std::shared_ptr<const void> owner, std::span<const std::byte> bytes);

// Bytes and the owner that keeps them alive.
struct HeldBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};
// Takes the bytes, and returns them held in memory or in a file.
HeldBytes hold_bytes(std::vector<std::byte> bytes);

// Returns a copy of the bytes that begins at a page of a file; nothing if the temporary folder has no room.
std::optional<HeldBytes> copy_to_pages(std::span<const std::byte> bytes);

// Memory of a file without a name, whose pages may be released and are read again. It is for data that a run
// needs in turn, such as packed weights.
class FileMemory {
 public:
  FileMemory() = default;
  // Takes zeros, which have their place on the disk; the memory is empty if the temporary folder has none.
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
  // Returns the result as hold_bytes() does, and ends the use of this object.
  HeldBytes hold() &&;
  // Returns the result for one reader, without counting it.
  HeldBytes lend() &&;

 private:
  size_t bytes_;
  FileMemory file_;
  std::vector<std::byte> memory_;
};

// Releases the pages of all registered mappings, FileMemory included; readers map them again.
void release_all_file_pages();

// computed_constant_bytes() returns the bytes that hold_bytes() has taken on this thread so far, with those
// that count_as_computed() added for constants that are computed when they are read; kept_constant_bytes()
// the bytes of hold_bytes() that all threads still hold.
uint64_t computed_constant_bytes();
void count_as_computed(uint64_t bytes);
uint64_t kept_constant_bytes();

// While one lives, this thread's results stay in memory. It is for results that are read once.
class InMemoryScope {
 public:
  InMemoryScope();
  ~InMemoryScope();
  InMemoryScope(const InMemoryScope&) = delete;
  InMemoryScope& operator=(const InMemoryScope&) = delete;
};

}  // namespace sinter::convert

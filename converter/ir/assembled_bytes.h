// Bytes in one range of addresses that are assembled from pages of mapped files, which are not copied, and
// from copies.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sinter::convert {

class AssembledBytes {
 public:
  // Begins at a page. Nothing in it can be read before it is put there. Throws std::bad_alloc.
  explicit AssembledBytes(size_t bytes);
  ~AssembledBytes();
  AssembledBytes(const AssembledBytes&) = delete;
  AssembledBytes& operator=(const AssembledBytes&) = delete;

  std::span<const std::byte> span() const { return bytes_; }
  // Memory of the process, zeros at first, for a part of the range; and for the rest of its pages.
  std::span<std::byte> write(size_t offset, size_t bytes);
  // Puts bytes at `offset`, a page, where the last of their pages is theirs alone: the pages of their file
  // where they begin at one (begins_at_page()), which may be released as that file's; otherwise a copy.
  void put_pages(size_t offset, std::span<const std::byte> bytes);

 private:
  std::span<std::byte> bytes_;
  std::vector<std::span<const std::byte>> file_pages_;  // registered
};

}  // namespace sinter::convert

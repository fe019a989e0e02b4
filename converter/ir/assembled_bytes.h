// A range of addresses that is assembled from pages of mapped files, which are not copied, and from copies.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sinter::convert {

class AssembledBytes {
 public:
  // Takes a range from a page on, which cannot be read before bytes are put there. Throws std::bad_alloc.
  explicit AssembledBytes(size_t bytes);
  ~AssembledBytes();
  AssembledBytes(const AssembledBytes&) = delete;
  AssembledBytes& operator=(const AssembledBytes&) = delete;

  std::span<const std::byte> span() const { return bytes_; }
  // Returns memory of the process, zeros at first, for a part of the range; its pages become such memory.
  std::span<std::byte> write(size_t offset, size_t bytes);
  // Puts bytes at `offset`, a page; no other bytes may be in their last page. Bytes that begin at a page of a
  // file (begins_at_page()) are that file's pages, which may be released; others are copied.
  void put_pages(size_t offset, std::span<const std::byte> bytes);

 private:
  std::span<std::byte> bytes_;
  std::vector<std::span<const std::byte>> file_pages_;  // the registered mappings
};

}  // namespace sinter::convert

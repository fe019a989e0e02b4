#include "converter/ir/assembled_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "converter/ir/large_bytes.h"
#include "runtime/core/checked.h"

namespace sinter::convert {

AssembledBytes::AssembledBytes(size_t bytes) {
  void* const memory = ::mmap(nullptr, align_up(std::max<size_t>(bytes, 1), page_bytes()), PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(memory), bytes};
}

AssembledBytes::~AssembledBytes() {
  for (const auto pages : file_pages_) forget_file_pages(pages);
  ::munmap(bytes_.data(), align_up(std::max<size_t>(bytes_.size(), 1), page_bytes()));
}

std::span<std::byte> AssembledBytes::write(size_t offset, size_t bytes) {
  const std::span<std::byte> part = bytes_.subspan(offset, bytes);
  const size_t first = offset & ~(page_bytes() - 1), end = align_up(offset + bytes, page_bytes());
  if (::mprotect(bytes_.data() + first, end - first, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  return part;
}

void AssembledBytes::put_pages(size_t offset, std::span<const std::byte> bytes) {
  const std::span<std::byte> part = bytes_.subspan(offset, bytes.size());
  if (map_pages_again(bytes, part.data())) {
    register_file_pages(part);
    file_pages_.push_back(part);
    return;
  }
  std::copy(bytes.begin(), bytes.end(), write(offset, bytes.size()).begin());
}

}  // namespace sinter::convert

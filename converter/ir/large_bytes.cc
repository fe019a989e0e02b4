#include "converter/ir/large_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

#include "runtime/core/tensor_view.h"

namespace sinter::convert {
namespace {

uintptr_t address(const std::byte* p) { return reinterpret_cast<uintptr_t>(p); }

struct FilePages {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ranges;  // the first address, and the one behind the last
};

FilePages& file_pages() {
  static FilePages& pages = *new FilePages;  // constants may outlive every static object
  return pages;
}

std::atomic<uint64_t> bytes_in_memory{0}, bytes_in_files{0};
thread_local uint64_t bytes_computed = 0;
thread_local int in_memory_scopes = 0;

// Returns a descriptor of a file that is in no folder; -1 if there is none.
int open_nameless() {
  std::error_code fault;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(fault);
  if (fault) return -1;
  std::string name = (folder / "sinter-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(name.c_str());
  return fd;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// Returns the bytes in a mapping with a page of zeros behind them, so that reading past the last one is
// harmless. `gone` is called when the mapping ends.
template <class Gone>
std::optional<HeldBytes> hold_in_file(std::span<const std::byte> bytes, const Gone& gone) {
  const int fd = open_nameless();
  if (fd < 0) return std::nullopt;
  const size_t mapped = bytes.size() + page_bytes();
  void* memory = MAP_FAILED;
  if (write_all(fd, bytes) && ::ftruncate(fd, static_cast<off_t>(mapped)) == 0)
    memory = ::mmap(nullptr, mapped, PROT_READ, MAP_SHARED, fd, 0);  // map_pages_again() needs MAP_SHARED
  ::close(fd);
  if (memory == MAP_FAILED) return std::nullopt;
  const std::span<const std::byte> mapping(static_cast<const std::byte*>(memory), mapped);
  register_file_pages(mapping);
  std::shared_ptr<const void> owner(memory, [mapping, gone](const void* p) {
    gone();
    forget_file_pages(mapping);
    ::munmap(const_cast<void*>(p), mapping.size());
  });
  return HeldBytes{std::move(owner), mapping.first(bytes.size())};
}

// Returns a shared mapping, whose content stays when pages are released. Its pages get a place on the disk,
// without which a write would end the program when the disk is full.
std::span<std::byte> map_nameless(size_t bytes) {
  const int fd = open_nameless();
  if (fd < 0) return {};
  void* memory = MAP_FAILED;
  if (::posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return {};
  return {static_cast<std::byte*>(memory), bytes};
}

void release_pages(uintptr_t from, uintptr_t end) {
  ::madvise(reinterpret_cast<void*>(from), end - from, MADV_DONTNEED);
}

// Whether the bytes are in a registered mapping; `pages` are locked.
bool holds(const FilePages& pages, std::span<const std::byte> bytes) {
  const auto at = pages.ranges.upper_bound(address(bytes.data()));
  return at != pages.ranges.begin() && address(bytes.data()) + bytes.size() <= std::prev(at)->second;
}

}  // namespace

FileMemory::FileMemory(size_t bytes) : bytes_(bytes > 0 ? map_nameless(bytes) : std::span<std::byte>()) {
  if (bytes_.empty()) return;
  register_file_pages(bytes_);
  mapping_ = std::shared_ptr<void>(bytes_.data(), [mapping = bytes_](void* p) {
    forget_file_pages(mapping);
    ::munmap(p, mapping.size());
  });
}

void register_file_pages(std::span<const std::byte> mapping) {
  if (mapping.empty()) return;
  FilePages& pages = file_pages();
  const std::lock_guard lock(pages.mutex);
  pages.ranges[address(mapping.data())] = address(mapping.data()) + mapping.size();
}

void forget_file_pages(std::span<const std::byte> mapping) {
  FilePages& pages = file_pages();
  const std::lock_guard lock(pages.mutex);
  pages.ranges.erase(address(mapping.data()));
}

void release_file_pages(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const uintptr_t first = address(bytes.data()), end = first + bytes.size();
  FilePages& pages = file_pages();
  const std::lock_guard lock(pages.mutex);  // the mapping stays until the pages are released
  if (!holds(pages, bytes)) return;
  const uintptr_t from = first / page_bytes() * page_bytes();
  release_pages(from, end);
}

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

bool begins_at_page(std::span<const std::byte> bytes) {
  FilePages& pages = file_pages();
  const std::lock_guard lock(pages.mutex);
  return address(bytes.data()) % page_bytes() == 0 && holds(pages, bytes);
}

bool map_pages_again(std::span<const std::byte> bytes, std::byte* at) {
#ifdef MREMAP_FIXED
  if (!begins_at_page(bytes)) return false;
  // A call for no bytes leaves the pages also where they are.
  void* const there =
      ::mremap(const_cast<std::byte*>(bytes.data()), 0, bytes.size(), MREMAP_MAYMOVE | MREMAP_FIXED, at);
  return there != MAP_FAILED;
#else
  (void)bytes, (void)at;
  return false;
#endif
}

std::optional<HeldBytes> copy_to_pages(std::span<const std::byte> bytes) {
  return hold_in_file(bytes, [] {});
}

void release_all_file_pages() {
  FilePages& pages = file_pages();
  const std::lock_guard lock(pages.mutex);
  for (const auto& [first, end] : pages.ranges) release_pages(first, end);
}

std::shared_ptr<const void> reader_of(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
  if (bytes.size() < kLargeConstantBytes) return owner;
  {
    FilePages& pages = file_pages();
    const std::lock_guard lock(pages.mutex);
    if (!holds(pages, bytes)) return owner;
  }
  return std::shared_ptr<const void>(bytes.data(), [owner = std::move(owner), bytes](const void*) mutable {
    release_file_pages(bytes);
    owner.reset();
  });
}

HeldBytes hold_bytes(std::vector<std::byte> bytes) {
  const size_t size = bytes.size();
  bytes_computed += size;
  if (size >= kLargeConstantBytes && in_memory_scopes == 0 && bytes_in_memory + size > kHeldBytes)
    if (auto in_file = hold_in_file(bytes, [size] { bytes_in_files -= size; })) {
      bytes_in_files += size;
      return *std::move(in_file);
    }
  bytes_in_memory += size;
  const std::shared_ptr<const std::vector<std::byte>> kept(new std::vector<std::byte>(std::move(bytes)),
                                                           [size](const std::vector<std::byte>* p) {
                                                             bytes_in_memory -= size;
                                                             delete p;
                                                           });
  return {kept, *kept};
}

ResultBytes::ResultBytes(size_t bytes) : bytes_(bytes) {
  if (bytes >= kMappedResultBytes) file_ = FileMemory(bytes + kReadPadding);
  if (file_.span().empty()) memory_.resize(bytes + kReadPadding);
}

HeldBytes ResultBytes::hold() && {
  if (file_.span().empty()) {
    memory_.resize(bytes_);
    return hold_bytes(std::move(memory_));
  }
  bytes_computed += bytes_, bytes_in_files += bytes_;
  HeldBytes lent = std::move(*this).lend();
  return {std::shared_ptr<const void>(lent.bytes.data(),
                                      [owner = std::move(lent.owner), size = bytes_](const void*) mutable {
                                        bytes_in_files -= size;
                                        owner.reset();
                                      }),
          lent.bytes};
}

HeldBytes ResultBytes::lend() && {
  const auto kept = std::make_shared<ResultBytes>(std::move(*this));
  return {kept, kept->span()};
}

uint64_t computed_constant_bytes() { return bytes_computed; }
void count_as_computed(uint64_t bytes) { bytes_computed += bytes; }
uint64_t kept_constant_bytes() { return bytes_in_memory + bytes_in_files; }

InMemoryScope::InMemoryScope() { ++in_memory_scopes; }
InMemoryScope::~InMemoryScope() { --in_memory_scopes; }

}  // namespace sinter::convert

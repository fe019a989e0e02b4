#include "tests/memory/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/core/tensor_view.h"

namespace sinter::test {
namespace {

// Mappings are kept for the next taker of that size: thousands of small ones are made per test.
std::map<size_t, std::vector<std::byte*>>& kept() {
  static auto* lists = new std::map<size_t, std::vector<std::byte*>>;
  return *lists;
}

std::mutex& keeper() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr size_t kKeptBytes = size_t{1} << 20;

std::byte* map(size_t bytes) {
  const std::scoped_lock hold(keeper());
  if (auto& list = kept()[bytes]; !list.empty()) {
    std::byte* at = list.back();
    list.pop_back();
    return at;
  }
  void* p = mmap(nullptr, bytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // qemu takes no empty range.
  if (p == MAP_FAILED ||
      (bytes > 0 && mprotect(static_cast<std::byte*>(p) + kPage, bytes, PROT_READ | PROT_WRITE) != 0))
    std::abort();
  return static_cast<std::byte*>(p) + kPage;
}

void unmap(std::span<std::byte> window) {
  const std::scoped_lock hold(keeper());
  if (window.size() <= kKeptBytes)
    kept()[window.size()].push_back(window.data());
  else
    munmap(window.data() - kPage, window.size() + 2 * kPage);
}

}  // namespace

Guarded::Guarded(size_t bytes, Flush flush, size_t padding) : bytes_(bytes) {
  const size_t size = align_up(align_up(bytes, kBufferAlignment) + padding, kPage);
  window_ = {map(size), size};
  std::memset(window_.data(), static_cast<int>(kPoison), size);
  const size_t last = (size - padding - bytes) / kBufferAlignment * kBufferAlignment;
  data_ = window_.data() + (flush == Flush::kEnd ? last : 0);
}

Guarded::~Guarded() {
  if (!window_.empty()) unmap(window_);
}

Guarded& Guarded::operator=(Guarded&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(window_, other.window_);
  return *this;
}

bool Guarded::is_poison(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes[0] == kPoison && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool Guarded::clean() const {
  return is_poison({window_.data(), data_}) && is_poison({data_ + bytes_, window_.data() + window_.size()});
}

}  // namespace sinter::test

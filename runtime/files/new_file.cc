// NewFile: the parts that are the same on every system.
#include "runtime/files/new_file.h"

#include <atomic>
#include <cstring>

#include "sinter/new_file.h"

namespace sinter {

size_t NewFile::folder_length() const {
  const char* slash = std::strrchr(to_, '/');
#ifdef _WIN32
  for (const char other : {'\\', ':'})
    if (const char* found = std::strrchr(to_, other); found != nullptr && (slash == nullptr || found > slash))
      slash = found;
#endif
  return slash != nullptr ? static_cast<size_t>(slash - to_) + 1 : 0;
}

Status NewFile::open_beside() {
  constexpr char kMark[] = ".partial-";
  constexpr size_t kRandomBytes = 16, kLongestName = 200;  // systems take names of 255 bytes
  constexpr int kTries = 100;
  const size_t folder = folder_length();
  const char* name = to_ + folder;
  size_t kept = std::strlen(name);
  if (kept == 0) return detail::cannot_write(detail::kNoSuchFile);
  if (kept > kLongestName)
    for (kept = kLongestName; kept > 1 && (static_cast<uint8_t>(name[kept]) & 0xC0) == 0x80;) --kept;
  const size_t start = folder + kept + sizeof(kMark) - 1;
  if (start + 2 * kRandomBytes >= sizeof(path_)) return detail::cannot_write(detail::kTooLong);
  int64_t fault = 0;
  for (int i = 0; i < kTries; ++i) {
    uint8_t random[kRandomBytes];
    if (!detail::draw_random(random)) return invalid("the system gives no random numbers for a file's name");
    std::memcpy(path_ + 1, to_ + 1, folder + kept - 1);
    std::memcpy(path_ + folder + kept, kMark, sizeof(kMark));
    char* at = path_ + start;
    for (const uint8_t byte : random)
      *at++ = "0123456789abcdef"[byte >> 4], *at++ = "0123456789abcdef"[byte & 15];
    *at = '\0';
    std::atomic_ref first(path_[0]);  // a signal handler on any thread that sees it sees the whole name
    first.store(to_[0], std::memory_order_release);
    file_ = detail::create_exclusive(path_, replaces_, &fault);
    if (file_ != -1) return ok_status();
    first.store('\0', std::memory_order_release);  // a file of that name belongs to others from now on
    if (fault != detail::kExists) break;
  }
  return detail::cannot_write(fault);
}

Status NewFile::flush() {
  const size_t bytes = buffered_;
  buffered_ = 0;
  return detail::write_all(file_, {buffer_, bytes});
}

Status NewFile::write(std::span<const std::byte> bytes) {
  if (bytes.size() > sizeof(buffer_) - buffered_) {
    SINTER_RETURN_IF_ERROR(flush());
    if (bytes.size() > sizeof(buffer_)) return detail::write_all(file_, bytes);
  }
  if (!bytes.empty()) std::memcpy(buffer_ + buffered_, bytes.data(), bytes.size());
  buffered_ += bytes.size();
  return ok_status();
}

}  // namespace sinter

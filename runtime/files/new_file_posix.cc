#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#elif __has_include(<sys/random.h>)
#include <sys/random.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/files/new_file.h"
#include "sinter/new_file.h"

namespace sinter {
namespace {

// Returns whether the path names open descriptors: links whose text is not the path that they lead to.
bool names_descriptor(const char* path) {
  return std::strncmp(path, "/proc/", 6) == 0 || std::strncmp(path, "/dev/fd/", 8) == 0;
}

// Returns whether the link at the end of `path` may be followed, by the rule of Linux's
// fs.protected_symlinks, whatever its setting. `folder` is the length of the folder's part.
bool may_follow(char* path, size_t folder, const struct stat& link) {
#ifdef __wasi__
  (void)path, (void)folder, (void)link;
  return true;  // no users
#else
  struct stat of {};
  const char kept = path[folder];
  path[folder] = '\0';
  const bool known = stat(folder > 0 ? path : ".", &of) == 0;
  path[folder] = kept;
  const bool shared = !known || ((of.st_mode & S_ISVTX) != 0 && (of.st_mode & S_IWOTH) != 0);
  return !shared || link.st_uid == geteuid() || (known && link.st_uid == of.st_uid);
#endif
}

}  // namespace

namespace detail {

const int64_t kExists = EEXIST, kNoSuchFile = ENOENT, kTooLong = ENAMETOOLONG;

bool draw_random(std::span<uint8_t> bytes) {
#ifdef __linux__
  // The system call itself, because glibc before 2.25 has no function for it. Up to 256 bytes come at once.
  return syscall(SYS_getrandom, bytes.data(), bytes.size(), 0) == static_cast<long>(bytes.size());
#else
  return getentropy(bytes.data(), bytes.size()) == 0;
#endif
}

intptr_t create_exclusive(const char* path, bool secret, int64_t* fault) {
  int fd = -1;
  do fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, secret ? 0600 : 0666);
  while (fd < 0 && errno == EINTR);
  *fault = fd < 0 ? errno : 0;
  return fd;
}

Status write_all(intptr_t file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(static_cast<int>(file), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return cannot_write(n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return ok_status();
}

}  // namespace detail

NewFile::~NewFile() {
  if (file_ >= 0) ::close(static_cast<int>(file_));
  if (path_[0] != '\0') ::unlink(path_);
}

Status NewFile::follow_links() {
  constexpr int kMostLinks = 40;
  for (int links = 0;; ++links) {
    struct stat info {};
    if (lstat(to_, &info) != 0 || !S_ISLNK(info.st_mode)) return ok_status();
    if (links == kMostLinks) return detail::cannot_write(ELOOP);
    if (names_descriptor(to_)) return detail::cannot_replace();
    const size_t folder = folder_length();
    SINTER_RETURN_UNLESS(
        may_follow(to_, folder, info),
        invalid("the name is a link of another user in a folder that everybody can write to; "
                "remove it, or write elsewhere"));
    auto* text = reinterpret_cast<char*>(buffer_);
    const ssize_t length = readlink(to_, text, kLongestPath - 1);
    if (length < 0) return detail::cannot_write(errno);
    text[length] = '\0';
    const size_t start = text[0] == '/' ? 0 : folder;
    if (start + static_cast<size_t>(length) >= sizeof(to_)) return detail::cannot_write(ENAMETOOLONG);
    std::memcpy(to_ + start, text, static_cast<size_t>(length) + 1);
  }
}

Status NewFile::create(const char* to) {
  const size_t length = std::strlen(to);
  if (length >= sizeof(to_)) return detail::cannot_write(ENAMETOOLONG);
  std::memcpy(to_, to, length + 1);
  SINTER_RETURN_IF_ERROR(follow_links());
  struct stat old {};
  replaces_ = lstat(to_, &old) == 0;
  if (replaces_) {
    if (!S_ISREG(old.st_mode)) return detail::cannot_replace();
    mode_ = old.st_mode & 0777, owner_ = old.st_uid, group_ = old.st_gid;
  }
  return open_beside();
}

Status NewFile::rewind() {
  SINTER_RETURN_IF_ERROR(flush());
  return lseek(static_cast<int>(file_), 0, SEEK_SET) == 0 ? ok_status() : detail::cannot_write(errno);
}

Status NewFile::finish(Kept kept) {
  SINTER_RETURN_IF_ERROR(flush());
  kept_ = kept;
  // Some file systems have nothing to wait for.
  if (kept == Kept::kSafe && fsync(static_cast<int>(file_)) != 0 && errno != EINVAL)
    return detail::cannot_write(errno);
  return ok_status();
}

// Permissions that cannot be set are left out: no group gets those of another group.
void NewFile::keep_permissions() {
#ifndef __wasi__
  if (!replaces_) return;
  const int fd = static_cast<int>(file_);
  struct stat own {};
  if (fstat(fd, &own) != 0) return;
  const bool same = own.st_uid == owner_ && own.st_gid == group_;
  if (!same && fchown(fd, owner_, group_) != 0 && own.st_gid != group_ &&
      fchown(fd, static_cast<uid_t>(-1), group_) != 0)
    mode_ &= ~uint32_t{S_IRWXG};
  (void)fchmod(fd, mode_);
#endif
}

Status NewFile::publish() {
  keep_permissions();
  if (std::rename(path_, to_) != 0) return detail::cannot_write(errno);
  path_[0] = '\0';
  const int fd = static_cast<int>(file_);
  file_ = -1;
  if (::close(fd) != 0 && errno != EINTR) return detail::cannot_write(errno);
  if (kept_ == Kept::kTemporary) return ok_status();
  // The name on the disk, too. A folder that cannot be read cannot be waited for.
  const size_t folder = folder_length();
  to_[folder] = '\0';
  const int of = ::open(folder > 0 ? to_ : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (of < 0) return ok_status();
  const int fault = fsync(of) != 0 ? errno : 0;
  ::close(of);
  return fault == EIO ? detail::cannot_write(fault) : ok_status();
}

}  // namespace sinter

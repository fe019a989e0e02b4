#include "converter/files/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

// Returns the message about a file that is not a regular one.
const char* fault_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder; give the file in it";
  if (S_ISFIFO(mode)) return "is a pipe, but only files are read; write its bytes to a file, and give that";
  if (S_ISSOCK(mode)) return "is a socket, but only files are read; write its bytes to a file, and give that";
  return "is a device, but only files are read; give the name of a file";
}

FileError cannot_be_read(const std::filesystem::path& path, int fault) {
  return FileError(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(fault)));
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  do fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  while (fd_ < 0 && errno == EINTR);
  struct stat info = {};
  if (fd_ < 0) {
    const int fault = errno;
    if (fault == ENXIO && ::stat(path.c_str(), &info) == 0)
      throw FileError(fmt::format("{}: {}", path.string(), fault_of(info.st_mode)));
    throw cannot_be_read(path, fault);
  }
  const int fault = ::fstat(fd_, &info) != 0 ? errno : 0;
  if (fault == 0 && S_ISREG(info.st_mode)) {
    bytes_ = static_cast<size_t>(info.st_size);
    return;
  }
  ::close(fd_);
  if (fault != 0) throw cannot_be_read(path, fault);
  throw FileError(fmt::format("{}: {}", path.string(), fault_of(info.st_mode)));
}

InputFile::~InputFile() { ::close(fd_); }

std::filesystem::path InputFile::real_path() const {
  std::error_code none;
  const std::filesystem::path real =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd_), none);
  return none ? std::filesystem::canonical(path_) : real;
}

size_t InputFile::read(void* to, size_t bytes) {
  size_t got = 0;
  while (got < bytes) {
    const ssize_t n =
        ::read(fd_, static_cast<char*>(to) + got, std::min<size_t>(bytes - got, size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw cannot_be_read(path_, errno);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  InputFile file(path);
  std::vector<std::byte> bytes(file.bytes());
  if (file.read(bytes.data(), bytes.size()) != bytes.size())
    throw FileError(path.string() + ": cannot be read: it became shorter while it was read");
  return bytes;
}

}  // namespace sinter::convert

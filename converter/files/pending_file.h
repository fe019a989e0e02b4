// A file that appears whole or not at all: written under a temporary name beside its place, renamed last.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "converter/diagnostics/errors.h"
#include "converter/files/unfinished.h"

namespace sinter::convert {

// Throws FileError where no file can be put: looked at before the work, not after it.
inline void check_place(const std::filesystem::path& out) {
  const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : ".";
  if (!std::filesystem::is_directory(folder))
    throw FileError(
        fmt::format("{}: the folder does not exist; create it, or write elsewhere", folder.string()));
  if (std::filesystem::is_directory(out))
    throw FileError(fmt::format("{}: is a folder; give the name of a file", out.string()));
}
// The same for a result that is renamed into place, which would replace a device or a pipe.
inline void check_output(const std::filesystem::path& out) {
  check_place(out);
  if (std::filesystem::exists(out) && !std::filesystem::is_regular_file(out))
    throw FileError(
        fmt::format("{}: is not a regular file and would be replaced by one; write elsewhere", out.string()));
}

class PendingFile {
 public:
  explicit PendingFile(std::filesystem::path path) : path_(std::move(path)), pending_(path_) {
    file_ = std::fopen(pending_.path().c_str(), "wb+");
    if (file_ == nullptr) fail("cannot be written");
  }
  ~PendingFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(const void* data, size_t bytes) {
    if (bytes != 0 && std::fwrite(data, 1, bytes, file_) != bytes) fail("cannot be written");
    at_ += bytes;
  }
  void pad_to(uint64_t offset) {
    static constexpr std::array<char, 64> kZeros{};
    while (at_ < offset) write(kZeros.data(), std::min<uint64_t>(kZeros.size(), offset - at_));
  }
  void rewrite_start(const void* data, size_t bytes) {
    if (std::fseek(file_, 0, SEEK_SET) != 0) fail("cannot be written");
    write(data, bytes);
  }
  void publish(const std::function<void(const std::filesystem::path&)>& check) {
    // On the disk before it has its name, if that name is permanent.
    const bool safe = std::fflush(file_) == 0 && (!check || ::fsync(::fileno(file_)) == 0 || errno == EINVAL);
    if (!safe) fail("cannot be written");
    const int closed = std::fclose(file_);
    file_ = nullptr;
    if (closed != 0) fail("cannot be written");
    if (check) check(pending_.path());
    pending_.finish();
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw FileError(fmt::format("{}: {}: {}", path_.string(), what, std::strerror(errno)));
  }
  std::filesystem::path path_;
  Unfinished pending_;
  std::FILE* file_ = nullptr;
  uint64_t at_ = 0;
};

}  // namespace sinter::convert

// Opening what is read: regular files, so that nothing waits for the writer of a pipe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace sinter::convert {

class InputFile {
 public:
  // Throws FileError where there is no such file, and where it is a folder, a pipe, a socket or a device.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int descriptor() const { return fd_; }
  size_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Of the file that is open, with all links followed. Without /proc, what the path leads to now.
  std::filesystem::path real_path() const;
  // Up to `bytes` from where the last read ended; fewer at the end. Throws FileError.
  size_t read(void* to, size_t bytes);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  size_t bytes_ = 0;
};

// All bytes of a file. Throws FileError.
std::vector<std::byte> bytes_of_file(const std::filesystem::path& path);

}  // namespace sinter::convert

// Files that are read: regular ones alone, so that the program never waits for the writer of a pipe.
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
  // Returns the path of the open file, with all links followed; without /proc, the path's present target.
  std::filesystem::path real_path() const;
  // Reads up to `bytes` behind the last read, fewer at the end; returns their number. Throws FileError.
  size_t read(void* to, size_t bytes);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  size_t bytes_ = 0;
};

// Returns all bytes of a file. Throws FileError.
std::vector<std::byte> bytes_of_file(const std::filesystem::path& path);

}  // namespace sinter::convert

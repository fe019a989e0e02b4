// TemporaryFile: a path of this process in the system's folder for temporary files.
#pragma once

#include <filesystem>

namespace sinter::convert {

// Whatever is at the path is removed with this object.
class TemporaryFile {
 public:
  // Throws FileError where the system has no such folder.
  explicit TemporaryFile(const char* suffix);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sinter::convert

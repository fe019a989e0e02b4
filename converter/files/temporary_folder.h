// TemporaryFolder: a folder of this process alone among the system's temporary files.
#pragma once

#include <filesystem>
#include <string>

#include "converter/files/unfinished.h"

namespace sinter::convert {

// Nobody else can enter the folder or foresee its name. The object's end removes it with its content.
class TemporaryFolder {
 public:
  // Throws FileError where the system has no place for it.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const {
    return std::filesystem::path(path_) / name;
  }

 private:
  std::string path_;
  Unfinished on_signals_;
};

// The path of a file that is removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name) : path_(folder_ / name), on_signals_(path_.c_str()) {}
  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_;
  Unfinished on_signals_;
};

}  // namespace sinter::convert

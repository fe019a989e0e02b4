// FileMap: a file as read-only memory, on hosts that have files. The rest of the runtime does not need it.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/core/status.h"

namespace sinter {

class FileMap {
 public:
  FileMap() = default;
  FileMap(FileMap&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  // Fails with kInvalidArgument if the file cannot be opened or mapped; `a` is the system's error number.
  static Result<FileMap> open(const char* path);
  // Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace sinter

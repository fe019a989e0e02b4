// FileMap: a file as read-only memory, on hosts that have files. The rest of the runtime does not need it.
//
// A mapped file must not become shorter while its bytes are in use: the system ends a program that reads what
// is gone (SIGBUS). Nor should anybody write to it: weights are used in place. Replace files by renaming, as
// the converter does, or open them with kCopied.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/core/status.h"

namespace sinter {

class FileMap {
 public:
  enum class Mode {
    kMapped,  // pages come as they are used and are shared between processes
    kCopied,  // all bytes are read into memory of their own; then the file may change or go
  };
  FileMap() = default;
  FileMap(FileMap&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  // Fails with kInvalidArgument if the file cannot be opened or mapped; `a` is the system's error number.
  // kOutOfMemory: no memory for a copy.
  static Result<FileMap> open(const char* path, Mode mode = Mode::kMapped);
  // Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace sinter

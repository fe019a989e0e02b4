// FileMap: a file as read-only memory, on hosts that have files. The rest of the runtime does not need it.
//
// A mapped file must not be truncated while its bytes are in use: the system terminates a program that reads
// missing bytes (SIGBUS; Windows refuses to truncate it). Nor may anyone write to it: weights are used in
// place. Replace files by renaming, as the converter does, or open them with kCopied.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/core/status.h"

namespace sinter {

class FileMap {
 public:
  enum class Mode {
    kMapped,  // pages are loaded on use and shared between processes
    kCopied,  // all bytes are read into memory; the file may then change or be removed
  };
  FileMap() = default;
  FileMap(FileMap&& other) noexcept : bytes_(other.bytes_), copied_(other.copied_) { other.bytes_ = {}; }
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  // Fails with kInvalidArgument if the file cannot be opened or mapped; `a` is the system's error number.
  // kOutOfMemory if memory for a copy is not available.
  static Result<FileMap> open(const char* path, Mode mode = Mode::kMapped);
  // Returns page-aligned bytes; none for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  bool copied_ = false;  // Windows returns such memory in another way
};

}  // namespace sinter

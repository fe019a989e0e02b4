// Files that the converter writes. Each appears whole or not at all (sinter/new_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "converter/files/unfinished.h"
#include "sinter/new_file.h"

namespace sinter::convert {

// Throws FileError where no file can be put; called before the work, not after it.
void check_place(const std::filesystem::path& out);
// Throws it also for a device, a pipe or an open descriptor; for a result that has to be a file.
void check_output(const std::filesystem::path& out);

class PendingFile {
 public:
  // All members throw FileError.
  explicit PendingFile(std::filesystem::path path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(const void* data, size_t bytes);
  void pad_to(uint64_t offset);
  void rewrite_start(const void* data, size_t bytes);
  // Gives the file its name. `check`, if any, reads the file before that.
  void publish(const std::function<void(const std::filesystem::path&)>& check = {},
               NewFile::Kept kept = NewFile::Kept::kSafe);

 private:
  void check(const Status& status) const;
  std::filesystem::path path_;
  std::unique_ptr<NewFile> file_;
  Unfinished on_signals_;
  uint64_t at_ = 0;
};

// Whether the path is a device, a pipe or an open descriptor (/dev/stdout), which pass bytes on.
bool is_stream(const std::filesystem::path& path);
// Writes a whole file, or the bytes of a stream. Throws FileError.
void write_whole(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_whole(const std::filesystem::path& path, std::string_view text);

}  // namespace sinter::convert

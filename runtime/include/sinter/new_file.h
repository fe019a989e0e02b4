// NewFile: a file that appears under its name whole or not at all, on hosts that have files. The rest of the
// runtime does not need it.
//
//   sinter::NewFile file;
//   if (file.create("net.sinter").ok() && file.write(bytes).ok() && file.finish().ok())
//     published = file.publish().ok();
//
// Until it is published its bytes have another name in the same folder, which nobody can foresee and no link
// can be at. Whoever opens the name gets the whole old file or the whole new one, whatever else writes to it
// at the same time, and mappings of the old file stay as they are. On POSIX systems the file keeps the
// permissions, owner and group of the one that it replaces, as far as the process may set them, and a
// symbolic link stays a link: the file that it leads to is replaced. Other hard links keep the old file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace sinter {

// A NewFile has 24 KiB: not for small stacks. Errors are kInvalidArgument; `a` is the system's number, or 0.
class NewFile {
 public:
  enum class Kept {
    kSafe,       // the bytes, then the name, reach the disk before publish() returns
    kTemporary,  // they may be lost when the system fails
  };
  NewFile() = default;
  ~NewFile();  // removes the file unless it is published
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Refuses a target that a file cannot replace: a folder, a device, a pipe, a name of an open descriptor,
  // and a link that another user put into a folder where everybody can write. Called once.
  Status create(const char* to);
  // Returns the name under which the bytes are until publish(); empty when there are none. It stays at this
  // address, and is one or the other at any time, so that a signal's handler can remove the file.
  const char* path() const { return path_; }

  Status write(std::span<const std::byte> bytes);
  // The next write() replaces the first bytes.
  Status rewind();
  // Makes every byte readable at path().
  Status finish(Kept kept = Kept::kSafe);
  Status publish();

 private:
  static constexpr size_t kLongestPath = 4096, kBufferBytes = 16 << 10;
  Status follow_links();
  Status open_beside();
  Status flush();
  void keep_permissions();
  size_t folder_length() const;

  char to_[kLongestPath] = "", path_[kLongestPath] = "";
  intptr_t file_ = -1;  // a descriptor, or Windows' handle
  Kept kept_ = Kept::kSafe;
  // Permissions are those of the file that is replaced, if there is one.
  bool replaces_ = false;
  uint32_t mode_ = 0, owner_ = 0, group_ = 0;
  size_t buffered_ = 0;
  std::byte buffer_[kBufferBytes];
};

}  // namespace sinter

// A file that is open or mapped elsewhere is not replaced, but a symbolic link is.
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): rand_s
#include <windows.h>

#include <cstring>

#include "runtime/files/new_file.h"
#include "sinter/new_file.h"

namespace sinter {
namespace {

HANDLE handle_of(intptr_t file) { return reinterpret_cast<HANDLE>(file); }

}  // namespace

namespace detail {

const int64_t kExists = ERROR_FILE_EXISTS, kNoSuchFile = ERROR_FILE_NOT_FOUND,
              kTooLong = ERROR_FILENAME_EXCED_RANGE;

bool draw_random(std::span<uint8_t> bytes) {
  for (uint8_t& byte : bytes) {
    unsigned int drawn = 0;
    if (rand_s(&drawn) != 0) return false;
    byte = static_cast<uint8_t>(drawn);
  }
  return true;
}

intptr_t create_exclusive(const char* path, bool, int64_t* fault) {
  const HANDLE made =
      CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
  *fault = made == INVALID_HANDLE_VALUE ? GetLastError() : 0;
  return reinterpret_cast<intptr_t>(made);  // INVALID_HANDLE_VALUE is -1
}

Status write_all(intptr_t file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    constexpr size_t kPiece = size_t{1} << 30;
    DWORD n = 0;
    if (!WriteFile(handle_of(file), bytes.data(),
                   static_cast<DWORD>(bytes.size() < kPiece ? bytes.size() : kPiece), &n, nullptr) ||
        n == 0)
      return cannot_write(GetLastError());
    bytes = bytes.subspan(n);
  }
  return ok_status();
}

}  // namespace detail

NewFile::~NewFile() {
  if (file_ != -1) CloseHandle(handle_of(file_));
  if (path_[0] != '\0') DeleteFileA(path_);
}

Status NewFile::follow_links() { return ok_status(); }
void NewFile::keep_permissions() {}

Status NewFile::create(const char* to) {
  const size_t length = std::strlen(to);
  if (length >= sizeof(to_)) return detail::cannot_write(detail::kTooLong);
  std::memcpy(to_, to, length + 1);
  const DWORD old = GetFileAttributesA(to_);
  replaces_ = old != INVALID_FILE_ATTRIBUTES;
  if (replaces_ && (old & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE)) != 0)
    return detail::cannot_replace();
  return open_beside();
}

Status NewFile::rewind() {
  SINTER_RETURN_IF_ERROR(flush());
  const LARGE_INTEGER start = {};
  return SetFilePointerEx(handle_of(file_), start, nullptr, FILE_BEGIN)
             ? ok_status()
             : detail::cannot_write(GetLastError());
}

// Closes the file, so that others can open it.
Status NewFile::finish(Kept kept) {
  SINTER_RETURN_IF_ERROR(flush());
  kept_ = kept;
  const bool safe = kept == Kept::kTemporary || FlushFileBuffers(handle_of(file_));
  const int64_t fault = safe ? 0 : GetLastError();
  CloseHandle(handle_of(file_));
  file_ = -1;
  return safe ? ok_status() : detail::cannot_write(fault);
}

Status NewFile::publish() {
  const DWORD safe = kept_ == Kept::kSafe ? MOVEFILE_WRITE_THROUGH : 0;
  if (!MoveFileExA(path_, to_, MOVEFILE_REPLACE_EXISTING | safe)) return detail::cannot_write(GetLastError());
  path_[0] = '\0';
  return ok_status();
}

}  // namespace sinter

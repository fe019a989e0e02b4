// FileMap by Windows' file mappings.
#include <windows.h>

#include <cstdint>

#include "sinter/file_map.h"

namespace sinter {
namespace {

class Handle {
 public:
  explicit Handle(HANDLE h) : handle_(h) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (open()) CloseHandle(handle_);
  }
  bool open() const { return handle_ != nullptr && handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }

 private:
  HANDLE handle_;
};

// Reads exactly `bytes`; false if there are fewer.
bool read_all(HANDLE file, std::byte* to, size_t bytes) {
  while (bytes > 0) {
    constexpr size_t kPiece = size_t{1} << 30;
    DWORD n = 0;
    if (!ReadFile(file, to, static_cast<DWORD>(bytes < kPiece ? bytes : kPiece), &n, nullptr) || n == 0)
      return false;
    to += n, bytes -= n;
  }
  return true;
}

}  // namespace

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  const auto mine = bytes_;
  const bool copied = copied_;
  bytes_ = other.bytes_, copied_ = other.copied_;
  other.bytes_ = mine, other.copied_ = copied;
  return *this;
}

FileMap::~FileMap() {
  if (bytes_.empty()) return;
  auto* start = const_cast<std::byte*>(bytes_.data());
  if (copied_)
    VirtualFree(start, 0, MEM_RELEASE);
  else
    UnmapViewOfFile(start);
}

Result<FileMap> FileMap::open(const char* path, Mode mode) {
  const Handle file(CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr,
                                OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  SINTER_RETURN_UNLESS(file.open(), invalid("the file cannot be opened (error %a)", GetLastError()));
  LARGE_INTEGER length = {};
  SINTER_RETURN_UNLESS(GetFileType(file.get()) == FILE_TYPE_DISK && GetFileSizeEx(file.get(), &length),
                       invalid("this is a folder, a pipe or a device; give the name of a file"));
  FileMap map;
  if (length.QuadPart == 0) return map;
  SINTER_RETURN_UNLESS(static_cast<uint64_t>(length.QuadPart) <= SIZE_MAX / 2,
                       unsupported("the file is too large for this machine"));
  const auto size = static_cast<size_t>(length.QuadPart);
  if (mode == Mode::kCopied) {
    void* p = VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    SINTER_RETURN_UNLESS(p != nullptr, error(Code::kOutOfMemory,
                                             "%a bytes of memory for a copy of the file cannot be allocated",
                                             static_cast<int64_t>(size)));
    map.bytes_ = {static_cast<const std::byte*>(p), size};
    map.copied_ = true;
    SINTER_RETURN_UNLESS(read_all(file.get(), static_cast<std::byte*>(p), size),
                         invalid("the file cannot be read, or was truncated (error %a)", GetLastError()));
    return map;
  }
  const Handle mapping(CreateFileMappingA(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
  const void* p = mapping.open() ? MapViewOfFile(mapping.get(), FILE_MAP_READ, 0, 0, size) : nullptr;
  SINTER_RETURN_UNLESS(p != nullptr, invalid("the file cannot be mapped (error %a)", GetLastError()));
  map.bytes_ = {static_cast<const std::byte*>(p), size};
  return map;
}

}  // namespace sinter

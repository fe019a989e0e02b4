// The functions of the system for NewFile: new_file_posix.cc or new_file_windows.cc.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace sinter::detail {

extern const int64_t kExists, kNoSuchFile, kTooLong;  // error numbers

constexpr Status cannot_write(int64_t fault) {
  return invalid("the file cannot be written (error %a)", fault);
}
constexpr Status cannot_replace() {
  return invalid("a folder, a device, a pipe or an open file would be replaced; give the name of a file");
}

bool draw_random(std::span<uint8_t> bytes);
// Creates a file that was not there, to be written and read. Returns -1 on failure, and `fault` states why.
// `secret`: nobody else may open it.
intptr_t create_exclusive(const char* path, bool secret, int64_t* fault);
Status write_all(intptr_t file, std::span<const std::byte> bytes);

}  // namespace sinter::detail

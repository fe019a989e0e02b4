// ShellCommand: a command of the user whose standard output is read.
#pragma once

#include <cstdio>
#include <string>

#include "converter/files/ending.h"

namespace sinter::convert {

// A running command in a group of processes of its own, which ends with this object and with this process.
// Its standard input is this process's, unless that is a terminal.
class ShellCommand {
 public:
  // Starts the command, with `argument` as one more word unless it is null. Throws FileError.
  explicit ShellCommand(std::string command, const std::string* argument = nullptr);
  ~ShellCommand();
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;

  std::FILE* output() const { return output_; }
  // Waits for the end; throws DataError where the command failed.
  void finish();
  // Throws FileError: "'COMMAND' cannot be WHAT", with the system's reason.
  [[noreturn]] void fail(const char* what) const;

 private:
  const std::string command_;
  std::FILE* output_ = nullptr;
  pid_t pid_ = -1;  // the shell's process, and the group
  UnfinishedGroup group_;
};

}  // namespace sinter::convert

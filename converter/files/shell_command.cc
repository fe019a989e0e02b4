#include "converter/files/shell_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  bool open() { return ::pipe2(ends, O_CLOEXEC) == 0; }
  ~Pipe() { close(0), close(1); }
  void close(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
};

// Turns the new process into the shell, once its parent has entered it in the list of groups to end.
[[noreturn]] void become_shell(const char* line, const char* argument, Pipe& output, Pipe& start) {
  UnfinishedGroup::forget_all();
  ::setpgid(0, 0);
  start.close(1);
  char go = 0;
  if (::read(start.ends[0], &go, 1) != 1) ::_exit(127);
  // The system stops a group in the background that reads from a terminal.
  if (::isatty(STDIN_FILENO) != 0)
    if (const int none = ::open("/dev/null", O_RDONLY); none >= 0) ::dup2(none, STDIN_FILENO);
  ::dup2(output.ends[1], STDOUT_FILENO);
  ::execl("/bin/sh", "sh", "-c", line, "sh", argument, static_cast<char*>(nullptr));
  ::_exit(127);
}

}  // namespace

ShellCommand::ShellCommand(std::string command, const std::string* argument) : command_(std::move(command)) {
  const std::string line = argument != nullptr ? command_ + " \"$1\"" : command_;
  Pipe output, start;
  if (!output.open() || !start.open()) fail("started");
  pid_ = ::fork();
  if (pid_ < 0) fail("started");
  if (pid_ == 0) become_shell(line.c_str(), argument != nullptr ? argument->c_str() : nullptr, output, start);
  ::setpgid(pid_, pid_);
  output_ = ::fdopen(output.ends[0], "r");
  const bool begins = group_.begin(pid_) && output_ != nullptr;
  if (output_ != nullptr) output.ends[0] = -1;
  if (begins && ::write(start.ends[1], "", 1) == 1) return;
  start.close(1);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  group_.end();
  if (output_ != nullptr) std::fclose(output_);
  errno = begins ? EPIPE : output_ == nullptr ? ENOMEM : EINTR;
  fail("started");
}

ShellCommand::~ShellCommand() {
  std::fclose(output_);
  if (pid_ > 0) end_group(pid_);
  group_.end();
}

void ShellCommand::finish() {
  siginfo_t ended = {};
  // WNOWAIT keeps the number of the process in use until the signals' list no longer has it.
  while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  group_.end();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (status == 0) return;
  throw DataError(WIFEXITED(status)
                      ? fmt::format("'{}' ended with exit code {}", command_, WEXITSTATUS(status))
                      : fmt::format("'{}' was terminated by signal {}", command_, WTERMSIG(status)));
}

void ShellCommand::fail(const char* what) const {
  throw FileError(fmt::format("'{}' cannot be {}: {}", command_, what, std::strerror(errno)));
}

}  // namespace sinter::convert

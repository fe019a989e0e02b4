#include "converter/files/unfinished.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "converter/files/ending.h"

namespace sinter::convert {
namespace {

// Data that a signal handler can read. A file without a slot stays after a signal.
constexpr int kSlots = 16;
std::atomic<const char*> slots[kSlots];
std::atomic<pid_t> groups[kSlots];
std::atomic<bool> ending{false}, prints_json{false};

// Removes a folder and its files by system calls, because the C library's functions for folders allocate.
void remove_folder(const char* path) {
#ifdef SYS_getdents64
  struct Entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    unsigned char kind;
    char name[1];
  };
  constexpr size_t kName = offsetof(Entry, name);
  alignas(Entry) char entries[4096];
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  for (long got; folder >= 0 && (got = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
    for (long at = 0; at < got;) {
      uint16_t bytes = 0;
      std::memcpy(&bytes, entries + at + offsetof(Entry, bytes), sizeof bytes);
      (void)::unlinkat(folder, entries + at + kName, 0);  // fails for "." and ".."
      at += bytes;
    }
  if (folder >= 0) ::close(folder);
#endif
  (void)::rmdir(path);
}

void on_signal(int number) {
  ending = true;
  for (const auto& group : groups)
    if (const pid_t id = group; id > 0) end_group(id);
  for (const auto& slot : slots)
    if (const char* path = slot; path != nullptr && *path != '\0' && ::unlink(path) != 0) remove_folder(path);
  if (number == SIGBUS) {
    constexpr std::string_view
        kText = "sinter: a file was truncated or could not be read while it was in use\n",
        kJson =
            "{\"error\": \"a file was truncated or could not be read while it was in use\", "
            "\"exit_code\": 6}\n";
    [[maybe_unused]] auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
    if (prints_json) written = ::write(STDOUT_FILENO, kJson.data(), kJson.size());
    ::_exit(6);
  }
  ::raise(number);  // takes the default action (SA_RESETHAND)
}

}  // namespace

Unfinished::Unfinished(const char* path) {
  for (int i = 0; i < kSlots && slot_ < 0; ++i)
    if (const char* none = nullptr; slots[i].compare_exchange_strong(none, path)) slot_ = i;
}
Unfinished::~Unfinished() {
  if (slot_ >= 0) slots[slot_] = nullptr;
}

bool UnfinishedGroup::begin(pid_t group) {
  for (int i = 0; i < kSlots && slot_ < 0; ++i)
    if (pid_t none = 0; groups[i].compare_exchange_strong(none, group)) slot_ = i;
  return !ending;
}
void UnfinishedGroup::end() {
  if (slot_ >= 0) groups[slot_] = 0;
  slot_ = -1;
}
void UnfinishedGroup::forget_all() {
  for (auto& group : groups) group = 0;
  for (auto& slot : slots) slot = nullptr;
}

void print_json_on_signals() { prints_json = true; }

void end_group(pid_t group) {
  constexpr timespec kPause{0, 5'000'000};
  constexpr int kMostPauses = 40;
  ::kill(-group, SIGTERM);
  bool waited = false;
  for (int i = 0; i < kMostPauses && !waited; ++i) {
    waited = ::waitpid(group, nullptr, WNOHANG) != 0;  // also true if there is no process to wait for
    if (!waited) ::nanosleep(&kPause, nullptr);
  }
  ::kill(-group, SIGKILL);
  if (!waited) ::waitpid(group, nullptr, 0);
}

void remove_unfinished_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGBUS}) {
    struct sigaction before = {}, action = {};
    // A process that ignores hang-ups (nohup) keeps ignoring them.
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace sinter::convert

#include "converter/files/unfinished.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace sinter::convert {
namespace {

// Data that a signal handler can read: plain memory. A path that is too long or one slot too many stays after
// a signal.
constexpr int kSlots = 8;
struct Slot {
  std::atomic<bool> taken{false}, used{false};
  char path[4096] = {};
};
Slot slots[kSlots];

int enter(const std::filesystem::path& path) {
  const std::string& text = path.native();
  if (text.size() >= sizeof(Slot::path)) return -1;
  for (int i = 0; i < kSlots; ++i) {
    if (slots[i].taken.exchange(true)) continue;
    std::memcpy(slots[i].path, text.c_str(), text.size() + 1);
    slots[i].used = true;
    return i;
  }
  return -1;
}
void leave(int slot) {
  if (slot < 0) return;
  slots[slot].used = false;
  slots[slot].taken = false;
}

void on_signal(int number) {
  // A folder behind what is in it.
  for (const auto remove : {::unlink, ::rmdir})
    for (const Slot& slot : slots)
      if (slot.used) (void)remove(slot.path);
  if (number == SIGBUS) {
    constexpr char kText[] = "sinter: a file was truncated or could not be read while it was in use\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
    ::_exit(6);
  }
  ::raise(number);  // its default action is back: SA_RESETHAND
}

}  // namespace

Unfinished::Unfinished(const std::filesystem::path& path) : slot_(enter(path)) {}
Unfinished::~Unfinished() { leave(slot_); }

void remove_unfinished_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGBUS}) {
    struct sigaction before = {}, action = {};
    // A process that ignores hang-ups (nohup) keeps ignoring them.
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace sinter::convert

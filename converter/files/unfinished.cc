#include "converter/files/unfinished.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace sinter::convert {
namespace {

// Data that a signal handler can read. What finds no slot stays after a signal.
constexpr int kSlots = 16;
std::atomic<const char*> slots[kSlots];

void on_signal(int number) {
  // A folder behind what is in it.
  for (const auto remove : {::unlink, ::rmdir})
    for (const auto& slot : slots)
      if (const char* path = slot; path != nullptr && *path != '\0') (void)remove(path);
  if (number == SIGBUS) {
    constexpr char kText[] = "sinter: a file was truncated or could not be read while it was in use\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
    ::_exit(6);
  }
  ::raise(number);  // its default action is back: SA_RESETHAND
}

}  // namespace

Unfinished::Unfinished(const char* path) {
  for (int i = 0; i < kSlots && slot_ < 0; ++i)
    if (const char* none = nullptr; slots[i].compare_exchange_strong(none, path)) slot_ = i;
}
Unfinished::~Unfinished() {
  if (slot_ >= 0) slots[slot_] = nullptr;
}

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

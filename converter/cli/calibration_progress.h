// A line on the terminal that says how far a pass over samples is and when it will be done.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace sinter::convert {

class CalibrationProgress {
 public:
  CalibrationProgress(const char* what, bool terminal) : what_(what), terminal_(terminal) {}
  // total -1: not known.
  void show(int64_t done, int64_t total) {
    if (!terminal_) return;
    const auto now = Clock::now();
    if (done != total && now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    const double spent = std::chrono::duration<double>(now - start_).count();
    if (total < 0)
      std::fprintf(stderr, "\r\033[K%s: %lld samples, %.0f s", what_, static_cast<long long>(done), spent);
    else
      std::fprintf(stderr, "\r\033[K%s: %lld of %lld samples, %.0f s left", what_,
                   static_cast<long long>(done), static_cast<long long>(total),
                   spent * static_cast<double>(total - done) / static_cast<double>(done));
  }
  void clear() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const char* what_;
  bool terminal_;
  Clock::time_point start_ = Clock::now(), shown_;
};

}  // namespace sinter::convert

#include "converter/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sinter::convert {
namespace {

constexpr std::chrono::milliseconds kTerminalPause{250}, kLogPause{20'000};
// An estimate from less than this is a guess.
constexpr double kLeastSeconds = 4, kLeastFraction = 0.04;

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(seconds));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Progress::Progress(std::vector<ProgressStage> stages, bool quiet, CommandListener* listener)
    : stages_(std::move(stages)),
      listener_(listener),
      terminal_(::isatty(STDERR_FILENO) != 0),
      finished_(quiet) {
  if (!quiet && listener == nullptr) ticker_ = std::thread([this] { tick(); });
}

Progress::~Progress() { finish(); }

void Progress::begin(const std::string& stage) {
  std::unique_lock lock(mutex_);
  stage_ = stage, phase_ = nullptr, done_ = 0, total_ = -1, until_ = 0;
  for (size_t i = 0; i < stages_.size(); ++i)
    if (stages_[i].name == stage && i >= at_) at_ = i, within_ = 0;
  lock.unlock();
  report();
}

void Progress::step(const Phase& phase, int64_t done, int64_t total) {
  std::unique_lock lock(mutex_);
  if (phase_ != &phase || done < done_) {
    within_ = std::max(within_ + (until_ - within_) * part(), phase.begin);
    // The remaining work is unknown: each phase without an end takes half of the rest.
    until_ = phase.end > 0 ? std::max(within_, phase.end) : within_ + (1 - within_) / 2;
  }
  phase_ = &phase, done_ = done, total_ = total;
  lock.unlock();
  report();
}

// Only the thread that works changes what is read here. Estimates may fall; what is reported does not.
void Progress::report() {
  if (listener_ == nullptr) return;
  reported_ = std::max(reported_, fraction());
  listener_->progress(reported_, doing());
}

double Progress::part() const {
  return total_ > 0 ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)) : 0;
}

double Progress::fraction() const {
  double before = 0, all = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    all += stages_[i].share;
    if (i < at_) before += stages_[i].share;
  }
  // A phase that does not report its parts counts as half done.
  const double here =
      phase_ == nullptr ? within_ : within_ + (until_ - within_) * (total_ < 0 ? 0.5 : part());
  return all > 0 ? (before + (stages_.empty() ? 0 : stages_[at_].share) * here) / all : 0;
}

std::string Progress::doing() const {
  std::string text = stage_;
  if (phase_ != nullptr) {
    text += (text.empty() ? "" : ", ") + std::string(phase_->name);
    if (total_ > 0)
      text += fmt::format(": {} of {} {}", done_, total_, phase_->unit);
    else if (done_ > 0)
      text += fmt::format(": {} {}", done_, phase_->unit);
  }
  return text;
}

std::string Progress::line() const {
  const double spent = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string text = doing();
  text += fmt::format("; {} so far", duration(spent));
  const double f = fraction();
  if (spent >= kLeastSeconds && f >= kLeastFraction && f < 1)
    text += fmt::format(", about {} left", duration(spent * (1 - f) / f));
  return text;
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!finished_) {
    wake_.wait_for(lock, terminal_ ? kTerminalPause : kLogPause, [&] { return finished_; });
    if (finished_ || stage_.empty()) continue;
    if (terminal_)
      std::fprintf(stderr, "\r\033[K%s", line().c_str());
    else
      std::fprintf(stderr, "sinter: %s\n", line().c_str());
  }
}

void Progress::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake_.notify_all();
  if (!ticker_.joinable()) return;
  ticker_.join();
  if (terminal_) std::fputs("\r\033[K", stderr);
}

}  // namespace sinter::convert

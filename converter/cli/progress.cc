#include "converter/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "converter/cli/terminal.h"

namespace sinter::convert {
namespace {

constexpr std::chrono::milliseconds kTerminalPause{250}, kLogPause{20'000};
// An estimate from less time, or a smaller part of the work, would be a guess.
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

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::begin(const std::string& stage) {
  std::unique_lock lock(mutex_);
  stage_ = stage, phase_ = nullptr, done_ = 0, total_ = -1, left_.reset();
  for (size_t i = at_; i < stages_.size(); ++i)
    if (stages_[i].name == stage) at_ = i;
  lock.unlock();
  report();
}

void Progress::step(const Phase& phase, int64_t done, int64_t total, const std::optional<TimeLeft>& left) {
  std::unique_lock lock(mutex_);
  phase_ = &phase, done_ = done, total_ = total;
  left_ = left, left_at_ = seconds();
  lock.unlock();
  report();
}

// Only the working thread changes the fields that this reads. The reported fraction never falls.
void Progress::report() {
  if (listener_ == nullptr) return;
  const double spent = seconds();
  if (const std::optional<double> rest = left(); rest && spent > 0)
    reported_ = std::max(reported_, spent / (spent + *rest));
  listener_->progress(reported_, doing());
}

std::optional<double> Progress::left() const {
  double before = 0, behind = 0, here = 0;
  for (size_t i = 0; i < stages_.size(); ++i)
    (i < at_ ? before : i > at_ ? behind : here) += stages_[i].share;
  const double now = seconds();
  // A reported time left gives the seconds of a share; other stages count as half done, or by their phase.
  if (left_) {
    const double stage = std::max(left_->seconds - std::min(now - left_at_, left_->of_phase), 0.0);
    return stage + behind * (now + stage) / (before + here);
  }
  const double part = phase_ != nullptr && total_ > 0
                          ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_))
                          : 0.5;
  const double done = before + here * part;
  if (!(done > 0)) return std::nullopt;
  return now * (here * (1 - part) + behind) / done;
}

std::string Progress::doing() const {
  std::string text = stage_;
  if (phase_ != nullptr) {
    text += (text.empty() ? "" : ", ") + std::string(phase_->name);
    // The unit loses the s of the plural if the count is one.
    const size_t unit = done_ == 1 ? std::string_view(phase_->unit).size() - 1 : std::string_view::npos;
    if (total_ > 0)
      text += fmt::format(": {} of {} {}", done_, total_, phase_->unit);
    else if (done_ > 0)
      text += fmt::format(": {} {}", done_, std::string_view(phase_->unit).substr(0, unit));
  }
  return text;
}

std::string Progress::line() const {
  const double spent = seconds();
  std::string text = doing();
  text += fmt::format("; {} so far", duration(spent));
  const std::optional<double> rest = left();
  if (spent >= kLeastSeconds && rest && spent >= kLeastFraction * (spent + *rest))
    text += fmt::format(", about {} left", duration(*rest));
  return text;
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!finished_) {
    wake_.wait_for(lock, terminal_ ? kTerminalPause : kLogPause, [&] { return finished_; });
    if (finished_ || stage_.empty()) continue;
    if (terminal_)
      show_status(line());
    else
      print_messages(fmt::format("sinter: {}\n", line()));
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
  clear_status();
}

}  // namespace sinter::convert

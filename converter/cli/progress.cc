#include "converter/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace sinter::convert {
namespace {

constexpr std::chrono::milliseconds kTerminalPause{250}, kLogPause{20'000};
// An estimate from less than this is a guess.
constexpr double kLeastSeconds = 4, kLeastFraction = 0.04;

// What the parts of a stage count.
std::string_view unit_of(std::string_view what) {
  if (what == "weighing layers") return " layers";
  if (what == "choosing ranges") return " values";
  return " samples";
}

// Where the phases of "quantizing" usually begin and end, as shares of its time. Networks differ by a factor
// of about two in each.
struct Phase {
  std::string_view what;
  double begin, end;
};
constexpr Phase kPhases[] = {{"calibrating", 0, 0.07},
                             {"trying rewritings", 0.1, 0.4},
                             {"weighing rules", 0.3, 0.46},
                             {"choosing ranges", 0.5, 0.65},
                             {"rounding weights", 0.65, 0.75},
                             {"correcting biases", 0.75, 0.95},
                             {"choosing what stays in float", 0.95, 0.97},
                             {"correcting by runs", 0.97, 0.98},
                             {"measuring", 0.98, 1}};

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(seconds));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Progress::Progress(std::vector<ProgressStage> stages, bool quiet)
    : stages_(std::move(stages)), terminal_(::isatty(STDERR_FILENO) != 0), finished_(quiet) {
  if (!quiet) ticker_ = std::thread([this] { tick(); });
}

Progress::~Progress() { finish(); }

void Progress::begin(const std::string& stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage, what_.clear(), done_ = 0, total_ = -1, until_ = 0;
  for (size_t i = 0; i < stages_.size(); ++i)
    if (stages_[i].name == stage && i >= at_) at_ = i, within_ = 0;
}

void Progress::step(const char* what, int64_t done, int64_t total) {
  const std::lock_guard lock(mutex_);
  if (what_ != what || done < done_) {
    within_ += (until_ - within_) * part();
    const auto* phase =
        std::find_if(std::begin(kPhases), std::end(kPhases), [&](const Phase& p) { return p.what == what; });
    if (phase != std::end(kPhases)) within_ = std::max(within_, phase->begin);
    // The number of further phases is unknown: each takes half of the rest.
    until_ = phase != std::end(kPhases) ? std::max(within_, phase->end) : within_ + (1 - within_) / 2;
  }
  what_ = what, done_ = done, total_ = total;
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
  const double here = what_.empty() ? within_ : within_ + (until_ - within_) * (total_ < 0 ? 0.5 : part());
  return all > 0 ? (before + (stages_.empty() ? 0 : stages_[at_].share) * here) / all : 0;
}

std::string Progress::line() const {
  const double spent = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string text = stage_;
  if (!what_.empty()) text += (text.empty() ? "" : ", ") + what_;
  if (!what_.empty() && total_ > 0)
    text += fmt::format(": {} of {}{}", done_, total_, unit_of(what_));
  else if (done_ > 0)
    text += fmt::format(": {}{}", done_, unit_of(what_));
  text += fmt::format("; {} so far", duration(spent));
  const double f = fraction();
  if (spent >= kLeastSeconds && f >= kLeastFraction && f < 1)
    text += fmt::format(", about {} left in all", duration(spent * (1 - f) / f));
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

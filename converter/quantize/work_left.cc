#include "converter/quantize/work_left.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sinter::convert {
namespace {

constexpr double kNewest = 0.3;  // the share of the latest unit in what one takes

size_t number(Work kind) { return static_cast<size_t>(kind); }

size_t number(const Phase& phase) {
  return static_cast<size_t>(std::distance(
      std::begin(kPhasesInOrder), std::find(std::begin(kPhasesInOrder), std::end(kPhasesInOrder), &phase)));
}

}  // namespace

WorkLeft::WorkLeft(Clock clock, std::function<void(Work)> changed)
    : clock_(std::move(clock)), changed_(std::move(changed)), last_(clock_()) {}

void WorkLeft::guess(Work kind, Work like, double units, double seconds) {
  Kind& k = kinds_[number(kind)];
  k.like = like, k.units = units, k.seconds = seconds;
}

void WorkLeft::expect(const Phase& phase, Work kind, double units) {
  expects_ = true;
  if (const size_t n = number(phase); n >= at_ && n < expected_.size()) expected_[n][number(kind)] = units;
}

void WorkLeft::begin(const Phase& phase) {
  const size_t n = number(phase);
  if (n <= at_ || n >= expected_.size()) return;
  for (; at_ < n; ++at_) expected_[at_] = {};
}

void WorkLeft::did(Work kind, double units) {
  const double now = clock_();
  if (kind == Work::kTrial && new_weights_ > 0) --new_weights_, kind = Work::kRounding;
  if (units > 0) {
    std::optional<double>& each = kinds_[number(kind)].measured;
    const double latest = (now - last_) / units;
    each = each ? (1 - kNewest) * *each + kNewest * latest : latest;
    double& expected = expected_[at_][number(kind)];
    expected = std::max(0.0, expected - units);
  }
  last_ = now;
  if (changed_) changed_(kind);
}

double WorkLeft::seconds_of(Work kind) const {
  const Kind& k = kinds_[number(kind)];
  if (k.measured) return *k.measured;
  return kind == Work::kObserving ? 0 : k.units * seconds_of(k.like) + k.seconds;
}

double WorkLeft::seconds_of(size_t phase) const {
  double seconds = 0;
  for (size_t kind = 0; kind < kWorkKinds; ++kind)
    if (const double units = expected_[phase][kind]; units > 0)
      seconds += units * seconds_of(static_cast<Work>(kind));
  return seconds;
}

std::optional<TimeLeft> WorkLeft::left() const {
  if (!expects_ || !kinds_[number(Work::kObserving)].measured) return std::nullopt;
  TimeLeft left{0, seconds_of(at_)};
  for (size_t phase = at_; phase < expected_.size(); ++phase) left.seconds += seconds_of(phase);
  // The time of the unit in progress that has passed.
  const double done = std::min(clock_() - last_, left.of_phase);
  left.seconds -= done, left.of_phase -= done;
  return left;
}

}  // namespace sinter::convert

#include "converter/quantize/samples/sample_split.h"

#include <algorithm>

namespace sinter::convert {
namespace {

constexpr int64_t kSamplesPerJudge = 5, kMostJudges = 128, kRuns = 5;
constexpr int64_t kLongestBlock = 80;  // of a stream

// The finalizer of SplitMix64.
uint64_t hash(int64_t number) {
  uint64_t x = static_cast<uint64_t>(number) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

SampleSplit::SampleSplit(int64_t count) {
  if (count < 0) {
    runs_ = -1;
  } else if (const int64_t judges = std::min(count / kSamplesPerJudge, kMostJudges); judges > 0) {
    run_ = std::max<int64_t>(1, judges / kRuns);
    runs_ = judges / run_;
    period_ = count / runs_;
  }
}

bool SampleSplit::judges(int64_t index) const {
  if (runs_ < 0) {
    int64_t begin = kSamplesPerJudge, length = 2 * kSamplesPerJudge;
    if (index < begin) return false;
    while (index >= begin + length) begin += length, length = std::min(2 * length, kLongestBlock);
    return index >= begin + length - length / kSamplesPerJudge;
  }
  if (runs_ == 0 || index / period_ >= runs_) return false;
  const int64_t run = index / period_, at = index % period_;
  const auto places = static_cast<uint64_t>(period_ - run_ + 1);
  const auto place = static_cast<int64_t>(hash(run) % places);
  return at >= place && at < place + run_;
}

KeptSamples::KeptSamples(size_t most, int64_t total) : most_(static_cast<int64_t>(most)), total_(total) {}

void KeptSamples::offer(const Sample& sample) {
  const int64_t at = seen_++;
  if (total_ >= 0) {
    const int64_t wanted = std::min(total_, most_);
    if (at == 0 || at * wanted / total_ != (at - 1) * wanted / total_) kept_.push_back(sample);
    return;
  }
  if (at % stride_ != 0) return;
  if (static_cast<int64_t>(kept_.size()) == most_) {
    size_t n = 0;
    for (size_t i = 0; i < kept_.size(); i += 2, ++n)
      if (n != i) kept_[n] = std::move(kept_[i]);
    kept_.resize(n);
    stride_ *= 2;
    if (at % stride_ != 0) return;
  }
  kept_.push_back(sample);
}

ChoosingSamples::ChoosingSamples(SampleSource& source, size_t most)
    : source_(source),
      split_(source.count()),
      most_(most),
      choosing_(most, count()),
      judging_(most, split_.judges()) {}

int64_t ChoosingSamples::count() const {
  const int64_t all = source_.count();
  return all < 0 || with_judges_ ? all : all - split_.judges();
}

bool ChoosingSamples::next(Sample* sample) {
  while (source_.next(sample)) {
    const bool judge = split_.judges(seen_++);
    if (keeping_) (judge ? judging_ : choosing_).offer(*sample);
    if (!judge || with_judges_) return true;
  }
  return false;
}

void ChoosingSamples::rewind() {
  source_.rewind();
  seen_ = 0;
  if (!keeping_) return;
  choosing_ = KeptSamples(most_, count());
  judging_ = KeptSamples(most_, split_.judges());
}

std::vector<Sample> ChoosingSamples::take_choosing() {
  keeping_ = false;
  return choosing_.take();
}

std::vector<Sample> ChoosingSamples::take_judging() {
  keeping_ = false;
  return judging_.take();
}

}  // namespace sinter::convert

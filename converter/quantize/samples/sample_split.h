// Which of the given samples choose (ranges, rewritings, operations kept in float) and which judge the
// result: the reported SQNR is that of samples by which nothing was chosen.
//
// One sample in five judges, 128 at most. Judges come in runs: neighbours are often frames of one film or
// parts of one picture, and a judge between two of these has as good as been seen. Of a known number there
// are five runs, each at a place in its fifth of the data that a hash of the run's number gives, so that
// periodic data do not put all judges into one class; a stream has one at the end of blocks that double in
// length. The same data give the same split.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// Fewer judges than this are few: the interval that they give is wide.
inline constexpr int64_t kManyJudges = 10;

class SampleSplit {
 public:
  // `count`: of all samples; -1: not known. Of fewer than 5 samples none judges; of a stream none of the
  // first 5.
  explicit SampleSplit(int64_t count);
  bool judges(int64_t index) const;
  // Returns the number of judges among all samples; -1: their number is not known.
  int64_t judges() const { return runs_ < 0 ? -1 : runs_ * run_; }

 private:
  int64_t runs_ = 0, run_ = 0, period_ = 0;  // samples; runs_ < 0: a stream
};

// Some of a sequence of samples, evenly spread over it: all of them, as long as they are no more than `most`.
class KeptSamples {
 public:
  // `total`: how many will be offered; -1: not known, and then between most / 2 and `most` of more than
  // `most` are kept.
  KeptSamples(size_t most, int64_t total);
  void offer(const Sample& sample);
  std::vector<Sample> take() { return std::move(kept_); }

 private:
  int64_t most_, total_, seen_ = 0;
  int64_t stride_ = 1;  // where the total is not known
  std::vector<Sample> kept_;
};

// The samples of a source that choose, and in the end all of them. The first pass also keeps some of either
// kind.
class ChoosingSamples final : public SampleSource {
 public:
  // `most`: of either kind that are kept.
  ChoosingSamples(SampleSource& source, size_t most);
  int64_t count() const override;
  bool next(Sample* sample) override;
  void rewind() override;
  bool is_file() const override { return source_.is_file(); }
  // From now on the judges are returned, too.
  void include_judges() { with_judges_ = true; }
  // The kept samples, once; nothing is kept from then on.
  std::vector<Sample> take_choosing();
  std::vector<Sample> take_judging();

 private:
  SampleSource& source_;
  const SampleSplit split_;
  const size_t most_;
  int64_t seen_ = 0;
  bool keeping_ = true, with_judges_ = false;
  KeptSamples choosing_, judging_;
};

}  // namespace sinter::convert

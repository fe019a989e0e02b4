// Samples that are in memory already.
#pragma once

#include <span>

#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

class SampleList final : public SampleSource {
 public:
  explicit SampleList(std::span<const Sample> samples) : samples_(samples) {}
  int64_t count() const override { return static_cast<int64_t>(samples_.size()); }
  bool next(Sample* sample) override {
    if (at_ == samples_.size()) return false;
    *sample = samples_[at_++];
    return true;
  }
  void rewind() override { at_ = 0; }
  bool is_file() const override { return true; }

 private:
  std::span<const Sample> samples_;
  size_t at_ = 0;
};

}  // namespace sinter::convert

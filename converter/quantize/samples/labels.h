// Samples with right answers.
//
// A label is the number of a class, counted from 0. It comes from an array of the data (.npz), a key of a
// JSON list, a column of a CSV list, or the sub-folder that a file is in. Where labels are names, a list of
// classes gives their numbers: one name a line, in the order of the model's scores. Without such a list,
// sub-folders with whole numbers for names are these numbers, and others count in the order of their names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

struct LabelSource {
  std::string name;     // of the array, key or column; empty: folders, and the second column of a CSV list
  std::string classes;  // a file; empty: none
};

struct LabelledSamples {
  std::unique_ptr<SampleSource> samples;
  std::vector<int64_t> labels;  // one for each sample
  // The names of sub-folders that were counted in their order, by label; empty: labels come from elsewhere.
  std::map<int64_t, std::string> folders = {};
};

// Whether labels need no name of an array or key: the data is a folder, a pattern or a CSV list.
bool labels_itself(const std::string& data);

// Throws UsageError for a command, DataError where labels are missing, cannot be understood, or are more or
// fewer than the samples, and as open_samples().
LabelledSamples open_labelled(const std::string& data, const std::vector<SampleInput>& inputs,
                              const LabelSource& source, const SampleOptions& options);

}  // namespace sinter::convert

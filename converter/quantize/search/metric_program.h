// --metric cmd:PROGRAM: a metric of the user's own (boxes, PSNR, word errors), computed by a program.
//
// The program is started by the shell as `PROGRAM MANIFEST`. MANIFEST is a JSON file beside the model's
// outputs:
//
//   {"data": DATA, "samples": [{"index": 0, "files": ["photos/a.png"], "outputs": {"boxes":
//   "/tmp/.../0-0.npy"}}, ...]}
//
// "index" counts the samples of DATA from 0; "files" are those that the sample was read from, where each
// sample has its own. The program prints numbers, the higher the better: one number or JSON object with one
// number ({"psnr": 31.2}) a line. Their mean is the metric. Other lines belong on standard error.
#pragma once

#include <functional>
#include <string>

#include "converter/import/read/arrays.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// All outputs of a model for a sample, by name.
using RunSample = std::function<Arrays(const Sample&)>;

class ProgramMetric {
 public:
  // `command`: without "cmd:". A program that takes longer than `seconds` is ended.
  ProgramMetric(std::string command, std::string data, double seconds);

  // Runs the model on all samples, then the program. The outputs are in a temporary folder meanwhile. Throws
  // DataError where the program fails, takes too long, or prints anything else; FileError where the folder
  // cannot be written.
  double measure(SampleSource& samples, const RunSample& run);
  // Returns the measure of a graph, whose states are carried from sample to sample and begin anew every
  // `sequence` samples (0: never).
  double measure(SampleSource& samples, const Graph& graph, const RunnerOptions& options, int64_t sequence);
  // The key of the program's JSON objects; "metric" where it prints numbers.
  const std::string& name() const { return name_; }

 private:
  std::string command_, data_, name_ = "metric";
  double seconds_;
};

// The mean of what a program printed; sets `name` to the key of its objects. `what` names the program in
// errors. Throws DataError.
double parse_metric_lines(const std::string& text, const std::string& what, std::string* name);

}  // namespace sinter::convert

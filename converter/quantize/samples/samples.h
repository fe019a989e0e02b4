// Calibration and evaluation data: samples for a model's inputs, one at a time.
//
// DATA is a .npz file, a .npy or .pb file for a single input, a folder or pattern of such files,
// "cmd:COMMAND", whose standard output is read, or files of one sample each (converter/data/file_list.h):
// pictures, sounds, raw bytes, and lists of them. Arrays are stacks of samples as for `sinter run --each`:
// [N, d1, ...] where the model takes [1, d1, ...], else [N] and the model's shape; in a folder also one
// sample a file in the model's own shape. A command writes, for each sample, either one .npz or one .npy per
// input in the model's order (numpy.save(sys.stdout.buffer, x)), each holding that one sample.
//
// No more than one sample is in memory, however the file is compressed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "converter/data/preprocessing.h"
#include "converter/diagnostics/diagnostics.h"
#include "converter/import/read/imported_graph.h"
#include "converter/ir/graph.h"
#include "converter/quantize/samples/port_numbers.h"

namespace sinter::convert {

struct SampleInput {
  std::string name;
  DType dtype = DType::kNone;
  Dims dims;
  std::vector<std::string> symbols;  // per dim, "" for a fixed one; empty: unknown
  // The rows and the name of the constant table that the integers look up; 0 rows: there is none.
  int64_t rows = 0;
  std::string table = {};
  // The scale of an int8 input: float32 numbers are taken as well, and rounded by it. 0: they are not.
  IntegerScale integers = {};
  // Per dim the smallest size of samples, where `dims` are the largest; empty: all have `dims`.
  Dims minima = {};
};
// The graph's public inputs, without those of states; the symbols are taken from the model's declaration
// where that is given.
std::vector<SampleInput> sample_inputs(const Graph& graph, const ImportedGraph* declared = nullptr);

// One constant per input, in order, with the input's dtype and dims within its range.
using Sample = std::vector<ConstantPtr>;

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // -1: unknown, for a stream.
  virtual int64_t count() const = 0;
  // False at the end. Throws DataError for data that does not fit or is damaged, for NaN, infinities and
  // integers that are not a row of the table that they look up; FileError where reading fails.
  virtual bool next(Sample* sample) = 0;
  // From the first sample again; a command is started once more.
  virtual void rewind() = 0;
  // Whether reading all samples beforehand is cheap.
  virtual bool is_file() const = 0;
  // The files of a sample, from 0, where each sample has its own; else none.
  virtual std::vector<std::filesystem::path> files_of(int64_t) const { return {}; }
  // The label of such a sample; empty: it has none.
  virtual std::string label_of(int64_t) const { return {}; }
  // Why samples were left out by --skip-damaged, one reason for each, with its file.
  const std::vector<std::string>& left_out() const { return left_out_; }

 protected:
  std::vector<std::string> left_out_;
};

// The sentence that reports what --skip-damaged left out; empty: nothing.
std::string left_out_text(const SampleSource& samples);

struct SampleOptions {
  int64_t most = -1;                 // use this many, evenly spread over a file's; a stream's first ones
  Preprocessing preprocessing = {};  // of pictures and sounds
};

// Returns the place of sample `i` of `count` samples that are spread evenly over `total`.
inline int64_t spread_index(int64_t i, int64_t total, int64_t count) {
  return static_cast<int64_t>(static_cast<__int128>(i) * total / count);
}

// Reads headers and compares them with the inputs; all that does not fit is thrown as one DataError.
std::unique_ptr<SampleSource> open_samples(const std::string& data, std::vector<SampleInput> inputs,
                                           const SampleOptions& options = {});
// Throws UsageError where flags of preprocessing are given but none of these data (empty ones are passed
// over) holds a picture or a sound.
void check_preprocessing(const Preprocessing& how, const std::vector<std::string>& data,
                         const std::vector<SampleInput>& inputs);
std::vector<std::string> names_of(const std::vector<SampleInput>& inputs);

// Reads every sample of a file (of a stream: nothing) and throws DataError for NaN, infinities and integers
// that are not a row of the table that they look up. Files as warnings what may be a mistake: constant inputs
// or channels, equal samples, samples scaled unlike the others, numbers of a size that no model is trained
// with. Inputs of fewer than 16 numbers (times, sizes, switches) may be of any size. Rewinds.
void check_samples(SampleSource& samples, const std::vector<SampleInput>& inputs, Diagnostics& diagnostics);

}  // namespace sinter::convert

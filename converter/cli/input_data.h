// The data that a command runs a model on: the arrays or samples of --inputs, one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/cli/host_session.h"
#include "converter/data/preprocessing.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// Returns the model's inputs, with the types and shapes of its file.
std::vector<SampleInput> sample_inputs(const Model& model, uint32_t entry = 0);
// Returns the arrays of a sample under the names of these inputs.
Arrays as_arrays(const Sample& sample, const std::vector<SampleInput>& inputs);

class InputData {
 public:
  // One sample, as HostSession::set_inputs(arrays, each) takes it.
  struct Step {
    const Arrays& arrays;
    int64_t each;
  };

  // `data` is a file of arrays, which is read at once, or any other form of DATA (samples.h) but a command.
  explicit InputData(std::string data, Preprocessing how = {});
  // The data is one sample of random numbers, from random_inputs() of made_up_inputs.h.
  explicit InputData(uint64_t seed) : seed_(seed) {}

  // Returns the arrays of a file; null if the data is none.
  const Arrays* arrays() const { return samples_wanted_ || seed_ ? nullptr : &arrays_; }
  // Begins reading for shape set `entry`; called once. Pictures and sounds without flags get the
  // preprocessing that the file states. Arrays of a file are one sample if `stacks` is null, else stacks of
  // samples for this session of the model, which are read one by one. Throws DataError and UsageError where
  // data and model do not fit.
  void begin(const Model& model, const HostSession* stacks = nullptr, uint32_t entry = 0);
  // Whether there are several samples, whose outputs are stacked.
  bool several() const { return several_; }
  int64_t count() const { return count_; }
  // Returns why --skip-damaged left samples out, a reason for each.
  const std::vector<std::string>& skipped() const;
  // Returns the next sample, until `count()` were returned. It is valid until the next call.
  std::optional<Step> next();

 private:
  std::string data_;
  Preprocessing how_;
  std::optional<uint64_t> seed_;
  bool samples_wanted_ = false, several_ = false;
  Arrays arrays_;
  std::vector<SampleInput> inputs_;
  std::unique_ptr<SampleSource> source_;
  int64_t count_ = 1, at_ = 0;
};

// Returns the data of --inputs or --random. Throws UsageError where both are given, or none.
InputData open_inputs(const std::string& inputs, const std::optional<uint64_t>& seed,
                      const Preprocessing& how);

// Returns the first sample of the data, for commands that measure.
Arrays first_inputs(InputData data, const Model& model, uint32_t entry = 0);

}  // namespace sinter::convert

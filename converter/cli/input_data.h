// What a model is run on by a command: the arrays or samples of --inputs, one at a time.
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

// The model's inputs, with the types and shapes of its file.
std::vector<SampleInput> sample_inputs(const Model& model, uint32_t entry = 0);
// A sample of these inputs, by name.
Arrays as_arrays(const Sample& sample, const std::vector<SampleInput>& inputs);

class InputData {
 public:
  // One step of the data: for HostSession::set_inputs(arrays, each).
  struct Step {
    const Arrays& arrays;
    int64_t each;
  };

  // `data`: a file of arrays, which is read at once, or any other form of DATA (samples.h) but a command.
  explicit InputData(std::string data, Preprocessing how = {});
  // One sample of random numbers: random_inputs(), made_up_inputs.h.
  explicit InputData(uint64_t seed) : seed_(seed) {}

  // The arrays of a file; null: there is none.
  const Arrays* arrays() const { return samples_wanted_ || seed_ ? nullptr : &arrays_; }
  // Called once. `stacks`: a session of the model where arrays of a file are stacks of samples, to be read
  // one by one; null: they are one sample. Throws DataError and UsageError where data and model do not fit.
  // `entry`: the shape set that runs.
  void begin(const Model& model, const HostSession* stacks = nullptr, uint32_t entry = 0);
  // Whether there are several samples, whose outputs are stacked.
  bool several() const { return several_; }
  int64_t count() const { return count_; }
  // Why samples were left out by --skip-damaged.
  const std::vector<std::string>& skipped() const;
  // The next sample, until `count()` were returned. Valid until the next call.
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

// --inputs or --random, whichever is given. Throws UsageError where that is both, or none.
InputData open_inputs(const std::string& inputs, const std::optional<uint64_t>& seed,
                      const Preprocessing& how);

// The first sample of the data, for commands that measure.
Arrays first_inputs(InputData data, const Model& model, uint32_t entry = 0);

}  // namespace sinter::convert

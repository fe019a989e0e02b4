// Runs a float graph on samples and passes its intermediate values to observers.
//
// The graph is planned and run as a device would run it, so that what is observed is what will run. Values
// are read in place, right after the step that makes them (or the last of the steps, where a value that costs
// nothing is joined from several); memory and file do not grow with what is watched.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/ir/resident_limit.h"
#include "converter/quantize/ranges/histogram.h"
#include "converter/quantize/samples/samples.h"
#include "runtime/backend/backend.h"
#include "runtime/core/parallel.h"
#include "runtime/core/tensor_view.h"

namespace sinter::convert {

class KeptPackings;

struct RunnerOptions {
  // The application's, best first; the reference kernels are always there. See sinter/backends.h.
  std::vector<Backend*> backends;
  ThreadPool* threads = nullptr;
  std::string backend;  // only this one; empty: as planned
  // Plan as conversion does, with values inside others; watchers may then see nothing.
  bool strides = false;
  size_t most_bytes = SIZE_MAX;  // of memory that a session may take
  // A file and a session of more bytes together are in pages that a ResidentLimit, which the caller has,
  // releases while they run.
  size_t most_resident = kResidentFileBytes;
  KeptPackings* packings = nullptr;  // that such sessions share; null: each packs its own
};

// A graph that can be run in this process. The graph is copied; ids are those of the original.
class GraphRunner {
 public:
  // Large constants stay where they are, or are copied to the temporary folder once (mapped_model.h). Throws
  // DataError where memory is short or may not be taken.
  GraphRunner(const Graph& graph, const RunnerOptions& options);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Dense, dims as in the graph. Valid during the call.
  using Watcher = std::function<void(ValueId, const TensorView&)>;
  // Inputs, outputs and anything that a node of the main graph makes; others (constants, values that planning
  // dropped) are never seen. Replaces what was watched before.
  void watch(std::span<const ValueId> values);
  // One run; `sample` in the order of the graph's inputs. Throws DataError where the data made it fail.
  void run(const Sample& sample, const Watcher& watcher = {});
  // The graph's outputs after a run, in order.
  TensorView output(size_t index) const;

 private:
  void clear_padding() const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns a copy of a dense tensor.
ConstantPtr copy_of(const TensorView& view);

struct ObserveOptions {
  RunnerOptions runner;
  bool channels = true;      // numbers per channel (last axis), unless there are too many
  int64_t most_counted = 0;  // see TensorStatistics; 0: by the number of samples
  // After every sample; total is -1 for a stream of unknown length.
  std::function<void(int64_t done, int64_t total)> progress;
};

// By value. Values that are not floats or were never computed have no entry.
struct Observations {
  int64_t samples = 0;
  std::map<ValueId, TensorSummary> values;
  const TensorSummary* find(ValueId id) const {
    const auto it = values.find(id);
    return it == values.end() ? nullptr : &it->second;
  }
};

// One pass over all samples. Throws DataError where there is none, or where a run fails.
Observations observe(const Graph& graph, SampleSource& samples, std::span<const ValueId> values,
                     const ObserveOptions& options);
// Every float32 or float64 value of the main graph that is not a constant.
std::vector<ValueId> observable_values(const Graph& graph);

}  // namespace sinter::convert

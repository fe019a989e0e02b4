// The distance of a .sinter file's values from the exact ones, and the part of it that each layer adds.
//
// Values are matched by the ONNX names that files keep: a fused step gives the last of the values that it
// replaces, so equal names mean equal values. The file runs twice on every sample. In the second run every
// result is replaced, right after it was measured, by the exact one (rounded to its own integers), so that
// the measured noise is that of one layer with exact operands.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/cli/elided_values.h"
#include "converter/cli/host_session.h"
#include "converter/quantize/search/noise.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {

// A result of a step.
struct StepValue {
  std::string name, base;      // its name in the file; that of its ONNX value. Empty: stripped
  std::vector<int64_t> order;  // dim i is axis order[i] of the ONNX value; empty: all in the same order
  std::optional<QuantParams> params;
  DType dtype = DType::kNone;
  bool rescaled = false;  // its channels have other factors than the ONNX value's
  bool bounded = false;   // its used length depends on the run
};
// Returns the program that computes an entry, in the default profile.
const fb::Program& program_of(const Model& model, uint32_t entry);
// Returns the results of the program's main list, by step and output.
std::vector<std::vector<StepValue>> step_values(const Model& model, uint32_t entry);
// Whether any value of the entry is known to represent other numbers than it holds.
bool has_quantized_values(const Model& model, uint32_t entry);

// The operand of a value's Quantize, clamped to the range of the integers, and the distance of two integers.
struct Unrounded {
  ConstantPtr exact;
  double step = 0;
};

// A reference's values, by ONNX name, with axes in ONNX's order; quantized ones as numbers.
class ExactLayers {
 public:
  ExactLayers(const Model& model, uint32_t entry);
  // Runs the reference and keeps its values. With `integers`, a quantized result is kept and then replaced by
  // that run's, so that the steps behind a rounding do not see that it went the other way.
  void run(HostSession& session, const ExactLayers* integers = nullptr);
  // Returns the exact value in float64; null if there is none. The value of the same name is preferred, then
  // the ONNX value that the name ends with, then a value that was made from that.
  ConstantPtr find(const StepValue& value) const;
  // Returns it with its axes in the order of the step's result; null also where that is impossible.
  ConstantPtr find_as_held(const StepValue& value) const;
  // Returns the value before its Quantize, with its axes in the order of the step's result, or nothing if no
  // Quantize made it, or if another operation came between.
  std::optional<Unrounded> find_unrounded(const StepValue& value) const;
  // Returns the content of the state of this ONNX input when the run began; null if there is none.
  const std::vector<double>* find_state(const std::string& input) const {
    const auto at = states_.find(input);
    return at == states_.end() ? nullptr : &at->second;
  }

 private:
  void keep(const StepValue& value, const TensorView& v);
  void keep_unrounded(uint32_t step, const OpCall& call);
  static void replace(const StepValue& value, const TensorView& v, const ExactLayers& by);
  std::vector<StepValue> inputs_;
  std::vector<std::vector<StepValue>> values_;
  std::vector<std::string> first_operands_;  // their names, by step
  std::map<std::string, Unrounded> unrounded_;
  ElidedValues elided_;
  std::map<std::string, ConstantPtr> exact_, derived_;  // by the value's own name; by that of its base
  std::map<std::string, std::vector<double>> states_;
  std::set<std::string> quantized_;  // names of integers that represent other numbers
  std::set<std::string> integers_;   // names of integers that do not, or are not known to
};

// The exact and the file's elements of a value, as doubles.
struct LayerPair {
  const std::vector<double>&exact, &rounded;
  DType dtype;  // the type of the file's value
};

class LayerNoise {
 public:
  struct Row {
    uint32_t step = 0;
    size_t output = 0;
    std::string name, node, op;
    DType dtype = DType::kNone;
    size_t judged = 0;  // the row's index for numbers of the caller
    NoiseMeter accumulated{0};
    std::optional<NoiseMeter> own;  // none: the layer only moves elements
  };
  // A function that is called for every pair of a run.
  using Judge = std::function<void(const Row&, const LayerPair&)>;

  LayerNoise(const Model& model, uint32_t entry);
  // Returns the outputs, and leaves the state after one run. The session's inputs are set, and `exact` ran on
  // the same sample. `judge` gets the results of the first run, `own` those from exact operands.
  Arrays run(HostSession& session, const ExactLayers& exact, const Judge& judge, const Judge& own = {});
  // Returns the rows in order of execution.
  std::vector<const Row*> rows() const;

 private:
  void look(uint32_t step, size_t output, Op op, const TensorView& v);
  void give_exact_states(const Session& session) const;
  const Model& model_;
  uint32_t program_;  // the entry's program
  std::vector<std::vector<StepValue>> values_;
  ElidedValues elided_;
  std::map<std::pair<uint32_t, size_t>, Row> rows_;
  std::map<std::string, uint32_t> first_;  // the first step with a result of this name
  const ExactLayers* exact_ = nullptr;
  const Judge *judge_ = nullptr, *own_ = nullptr;
  bool forcing_ = false;
  std::vector<double> x_, y_;
};

}  // namespace sinter::convert

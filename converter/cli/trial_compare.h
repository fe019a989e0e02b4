// Whether a converted file computes what its model states: every step on exact operands, against the exact
// reading of the ONNX model (reference_model.h) on the same inputs.
//
// A step may differ from it by what its declared roundings explain and no more. Where a Quantize of the model
// made the value, that is half a step of its scale and kMoreSteps; besides, and elsewhere, a share of the
// largest element that the precision of its types sets. A model whose own types lose more at the same place,
// computed node for node, explains that too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/cli/host_session.h"
#include "converter/cli/reference_model.h"

namespace sinter::convert {

// Steps that an integer may be off besides its rounding. A bias may move it by 1/64 (integer_products.cc),
// and an int16 intermediate in 128ths of a step by half of one; weights of multiples of 2^-11 move an
// interpolation by a quarter of a step, and 2^-8 is the margin.
inline constexpr double kMoreSteps = 3.0 / 128, kResizeSteps = 0.25 + 1.0 / 256;
// What the values of the exact reading that are kept take at most, and its constants.
inline constexpr double kMostComparedBytes = 16e6, kMostComparedConstants = 64e6;

struct TrialComparison {
  size_t values = 0;            // that were compared
  std::string note;             // why none was; most often empty
  std::string step, op, value;  // the first that differs by more; all empty: none does
  double difference = 0, explained = 0;
  bool in_steps =
      false;  // of the scale; else a share of the largest element, or of integers the unequal ones
  bool differs() const { return !value.empty(); }
  nlohmann::json to_json() const;
};

// The exact reading of a model, in float64, or (`wide` false) in the model's own types.
using OpenReading = std::function<std::unique_ptr<OpenModel>(bool wide)>;

// Runs both on these inputs, from their initial states. `by_bytes`: the model has --input-type uint8 built
// in.
TrialComparison compare_steps(const Model& model, HostSession& session, const Arrays& inputs,
                              OpenModel& exact, const OpenReading& open, bool by_bytes);

}  // namespace sinter::convert

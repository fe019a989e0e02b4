// Static quantization of a float graph that all other passes are done with: observe, choose ranges, round,
// compute on integers, and measure what that did to the outputs.
//
// Everything that could make the result better or worse is tried on samples that are kept, and stays only if
// the measured noise falls. What is reported is measured on samples that nothing was chosen by
// (sample_split.h).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "converter/quantize/integers/standard_form.h"
#include "converter/quantize/phases.h"
#include "converter/quantize/ranges/calibrators.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/search/output_trials.h"
#include "converter/quantize/search/quantization_plan.h"
#include "converter/quantize/settings/quantize_settings.h"
#include "converter/quantize/techniques.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {

// The SQNR of an output against the float graph, over the samples that were measured.
struct OutputNoise {
  std::string name;
  double db = 0;                     // 999: no difference, or integers that nothing is chosen by
  std::optional<double> equal = {};  // of integers: the share of elements that are those of the float graph
  // Of samples of the same kind, with 95 % confidence; it states nothing about other kinds.
  SqnrSpread spread = {};
};

// The noise over all samples of --evaluate.
struct Evaluation {
  std::vector<OutputNoise> outputs;
  int64_t samples = 0;
};

struct QuantizeOptions {
  // --quantize int4w and the like, --activations int8, or both: weights alone. All else here but `runner` and
  // `evaluate` is of no effect then.
  std::optional<WeightOnlyOptions> weights;
  DType activations = DType::kInt8;  // or kInt16 (int8x16): symmetric, beside weights of 8 bits
  CalibratorOptions calibrator;
  RunnerOptions runner;
  std::vector<std::string> disabled;    // names of techniques
  std::vector<std::string> keep_float;  // names of nodes, or of what they compute
  std::optional<QuantizeSettings> settings;
  bool adaptive_rounding = false;  // however long it takes
  bool force_int8 = false;         // also where float is faster
  // Results of View that enter or leave the graph as integers (integers/public_integers.h).
  std::set<ValueId> integer_ports;
  std::string byte_flags;      // PublicTypes::byte_flags(): settings with other integers go without these
  Cpu cpu = Cpu::kAvx512Vnni;  // of the device: its costs decide where float is faster
  // The result has the form of the ONNX standard, in which recurrent layers compute in float.
  bool standard_form = false;
  // Operations in float will be refused: integers that nothing gains by too, and rather 16 bits than float.
  bool require_int8 = false;
  // SQNR that every output must have, in dB, on samples that the ranges were not chosen by;
  // operations are kept in float until it does.
  std::optional<double> min_sqnr;
  // The fraction of the float graph's accuracy that may be lost, as `accuracy` measures
  // it.
  std::optional<double> max_drop;
  std::function<double(const Graph& graph)> accuracy;
  // Measures on data of its own, by which min_sqnr is judged then.
  std::function<Evaluation(const Graph& exact, const Graph& rounded)> evaluate;
  PhaseProgress progress;
  std::function<double()> clock;  // seconds, for the time left; null: the system's
};

// The effect of a technique on the worst output.
struct TechniqueGain {
  std::string name, what;
  double before_db = 0, after_db = 0;
  bool kept = false;
};

// A value or the weights of a layer, and the SQNR that the worst output would have if only this were rounded.
struct NoiseSource {
  std::string layer, op;  // that makes the value, or has the weights
  std::string value;      // empty: it has no name, or these are weights
  double db = 0;
  bool weights = false;
  std::string done = {};  // what was done about it: "float", "int16 activations"; empty: nothing
};

// An output with a low SQNR, and the largest part of its noise.
struct LowOutput {
  std::string name;
  double db = 0;
  NoiseSource loudest;  // db: of this output
  std::string cause;    // in words
};

// The results of other settings, measured on the same samples.
struct Suggestion {
  std::string flags, what;             // of sinter convert; what they do
  double before_db = 0, after_db = 0;  // of the worst output
  std::vector<OutputNoise> outputs;
  std::optional<double> accuracy;
  std::optional<double> evaluated_db;  // of the worst output on the data of QuantizeOptions::evaluate
};

// The result in the form of the ONNX standard, beside the integer operations that were measured.
struct StandardSummary {
  StandardForm form;
  size_t tables = 0;     // operations that are tables of integers here
  size_t wide = 0;       // values of int16
  size_t recurrent = 0;  // layers in float with weights of 8 bits
  // The SQNR of the form against the integer operations; empty: weights alone, or nothing was measured.
  std::vector<OutputNoise> agreement;
};

// Returns " without FLAGS", which settings with other integers need besides; empty: they need nothing.
std::string without_flags(const std::string& flags);

struct QuantizeSummary {
  std::string mode = "int8";   // as --quantize takes it
  Cpu cpu = Cpu::kAvx512Vnni;  // that times are estimated for
  int64_t samples = 0;         // the samples that chose
  int64_t refitted =
      0;  // the samples that the file is fitted to, `outputs` being of one without; 0: `samples`
  int64_t measured = 0;      // the samples of `outputs`
  bool held_out = true;      // nothing was chosen by these; false: there are too few samples for that
  int rounded = 0;           // values
  int rounded_products = 0;  // --activations int8
  size_t integer_steps = 0;
  std::vector<LayerFate> layers;  // that take or give float32, in order; int8w, int4w: those with weights
  uint64_t bytes_before = 0, bytes_after = 0;  // of the weights; int8w, int4w
  std::vector<OutputNoise> outputs;
  // How far the float graph's outputs differ from sample to sample: root mean square of the deviations from
  // each element's mean, over that of the elements, of the output where it is largest.
  std::optional<double> variation;
  std::vector<TechniqueGain> techniques;
  std::vector<NoiseSource> sources;  // the loudest first
  std::optional<double> float_accuracy, accuracy;
  std::optional<Evaluation> evaluation;
  std::string byte_flags;                   // QuantizeOptions::byte_flags
  bool reached = true;                      // the targets min_sqnr and max_drop are met
  double wanted_db = 0;                     // below which an output is one of these:
  std::optional<StandardSummary> standard;  // with QuantizeOptions::standard_form
  QuantizeSettings settings;                // of the result
  std::optional<AppliedSettings> applied;   // of QuantizeOptions::settings
  std::vector<LowOutput> low;
  std::vector<Suggestion> remedies;  // the one to try first comes first
};

// Returns the noise with the names of the graph's outputs.
std::vector<OutputNoise> noise_by_output(const Graph& graph, const Noise& noise);
// Returns the noise of the outputs on all samples, none of which is kept. Throws DataError where there is
// none.
Evaluation evaluate_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                          const QuantizeOptions& options);

// Quantizes the graph and measures that. `samples`: may be null with QuantizeOptions::weights, which are only
// measured on them. `others`: the same model in other shapes, which take over all decisions
// (search/plan_for_shapes.h); UsageError where they cannot. Throws DataError where samples do not fit or make
// a run fail, UsageError for names that are not there.
QuantizeSummary quantize_graph(Graph& graph, SampleSource* samples, const QuantizeOptions& options,
                               std::span<Graph* const> others = {});

}  // namespace sinter::convert

// A conversion on its way through the stages, and the stages in their order (convert.cc has the table).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "converter/import/read/reader.h"
#include "converter/quantize/samples/built_in_scale.h"
#include "converter/quantize/samples/labels.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// The graph of one shape set.
struct Entry {
  std::string shapes;  // as given; empty where the conversion has only one
  Graph graph;
};

struct Conversion {
  const std::filesystem::path &onnx, &out;
  const ConversionOptions& options;
  Diagnostics& diagnostics;
  // Each stage adds its part: the model as it was read and each entry's graph,
  ConversionReport report = {};
  std::optional<ImportedModel> imported = {};
  std::vector<LoweringOptions> lowerings = {};  // of the entries
  std::vector<Entry> entries = {};
  std::optional<NodeFates::Picture> rewritten = {};  // of the first entry, after the passes
  std::optional<Graph> in_float = {};  // the same before quantization, if its layers are reported
  // the data to calibrate and to evaluate with, which is that of the first entry,
  std::vector<SampleInput> inputs = {};
  std::unique_ptr<SampleSource> samples = {}, evaluated = {};
  std::optional<LabelledSamples> labelled = {};
  bool scale_warned = false;  // that calibration data has another scale than the model expects
  // Whether samples have the scale of training is asked of the network's own inputs.
  std::optional<BuiltInScale> built_in = {};
  // and each target's plan.
  std::vector<PlannedModel> plans = {};

  Graph& graph() { return entries.front().graph; }
  std::span<Entry> further() { return std::span(entries).subspan(1); }
  // Whether activations are quantized, and not weights alone.
  bool computes_on_integers() const { return options.quantize == "int8" || options.quantize == "int8x16"; }
  bool rounds_weights() const;
};

// Stages return whether the conversion goes on; false: the model is refused, and diagnostics has the reason.
// A stage that sets report.withheld is the last one. Each throws FileError.
bool read_model(Conversion& c);
bool lower_entries(Conversion& c);
bool open_calibration(Conversion& c);
bool open_evaluation(Conversion& c);
bool refuse_warnings(Conversion& c);  // with --strict
bool rewrite(Conversion& c);
bool check_data(Conversion& c);  // by what the float model gives for some of it
bool compute_in_preferred_type(Conversion& c);
bool keep_float_graph(Conversion& c);
bool quantize(Conversion& c);
bool publish_types(Conversion& c);  // --input-type, --output-type
bool report_rounding(Conversion& c);
bool check_all_types(Conversion& c);
bool plan(Conversion& c);
bool write(Conversion& c);
bool write_onnx(Conversion& c);  // instead of these two

// The diagnostics of a shape set: what the first one has as well is there once, the rest names its set.
void add_of_set(const Diagnostics& own, size_t set, Conversion& c);
void describe_ports(Conversion& c);
// The platforms named by --backends. Without names all but those on request, which are taken where they
// compute in the preferred type, and for this machine's own plan where this program has them.
std::vector<const Platform*> platforms_to_plan(const Target& target, const ConversionOptions& options);

}  // namespace sinter::convert

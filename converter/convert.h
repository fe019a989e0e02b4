// The conversion as one call: file in, file out, with everything that is reported about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "converter/cost/work.h"
#include "converter/diagnostics/diagnostics.h"
#include "converter/diagnostics/node_fates.h"
#include "converter/emit/emitter.h"
#include "converter/import/shape_sets.h"
#include "converter/passes/global/half_type.h"
#include "converter/passes/pass.h"
#include "converter/plan/fit_arena.h"
#include "converter/plan/planner.h"
#include "converter/quantize/integers/public_integers.h"
#include "converter/quantize/quantize.h"
#include "converter/quantize/report/layer_report.h"
#include "converter/quantize/search/metric.h"
#include "converter/target/target_names.h"
#include "runtime/backend/backend.h"

namespace sinter::convert {

// The whole file before it takes its name, the plans of its profiles, and how each shape set was lowered.
struct WrittenFile {
  const std::filesystem::path& path;
  std::span<const PlannedModel> plans;
  std::span<const LoweringOptions> lowerings;
};
// A stage of the written file, which may rewrite it; what it throws leaves no file.
using FileStage = std::function<void(const WrittenFile&)>;

// A file of class names, one a line, for an output of the model; empty: for its only one.
struct LabelFile {
  std::string output, file;
};

// How an ONNX model is written.
struct OnnxOutput {
  int opset = 0;           // of ai.onnx; 0: the oldest that has what the graph needs
  bool microsoft = false;  // operators of com.microsoft where ai.onnx has none
  bool external_data = false;
};

struct ConversionOptions {
  LoweringOptions lowering;
  // --shapes: an entry program for each, in this order. Empty: one, by `lowering` alone. Data to calibrate
  // and evaluate with is that of the first.
  std::vector<ShapeSet> shape_sets;
  PassOptions passes;
  EmitOptions emit;
  // The file has a plan for each. The timings of the first one decide what quantization keeps in float.
  std::vector<Target> targets = {host_target()};
  // The target given as `native`: its plan also takes platforms on request that this program has.
  std::optional<Target> native_target;
  bool strict = false;                // warnings refuse
  bool narrow_float64 = false;        // --float64 narrow: all of them, on the user's word
  const HalfType* prefer = nullptr;   // compute in this type where the target does
  bool winograd = true;               // convolutions by Winograd's algorithm where that is faster
  bool stored_weights = true;         // narrow weights stay narrow in the file
  double plan_effort = 1;             // of the planner's budgets for searching
  double plan_seconds = 0;            // PlanOptions::seconds
  std::optional<uint64_t> max_arena;  // bytes that the arena may have: plan/fit_arena.h
  // Only these of the target's platforms are planned for, besides the reference kernels; null: all.
  std::optional<std::vector<std::string>> plan_backends;
  // The backends that this program can use during a conversion, best first.
  std::vector<Backend*> backends;
  // --quantize: "int8", "int8x16", or one of kWeightOnlyModes (weights only, in blocks of `block`).
  // `calibrate` holds samples (see quantize/samples/samples.h), `samples` of which are used (-1: all);
  // weights alone need none, and are measured with them.
  std::string quantize;
  int64_t block = 32;
  PublicTypes public_types;        // --input-type int8, --output-type
  bool round_activations = false;  // --activations int8
  std::string calibrate;
  int64_t samples = -1;
  // N samples in a row are one sequence of a model with states, which begins with the initial state
  // (quantize/samples/carried_states.h); 0: all of them are one.
  int64_t sequence = 0;
  Preprocessing preprocessing;  // of the pictures and sounds of all data
  QuantizeOptions quantization;
  bool details = false;       // for --report: keep the plan, and measure every layer
  bool require_int8 = false;  // refuse if an operation is kept in float
  std::string evaluate;       // samples to measure the result with
  Metric metric;
  LabelSource labels;  // of `evaluate`, where the metric has labels
  std::vector<FileStage> file_stages;
  std::vector<LabelFile> label_files;           // --labels
  std::map<std::string, std::string> metadata;  // --meta; an empty value leaves the key out
  bool reads_data() const { return !calibrate.empty() || !evaluate.empty(); }
  // Writes the graph as an ONNX model, and makes no plan.
  std::optional<OnnxOutput> onnx;
  // Is called with the files of the model's external data, before anything is written. What it throws ends
  // the conversion.
  std::function<void(const std::vector<std::filesystem::path>&)> external_files;
  // Is called before each stage with its name ("reading", "planning", ...), for progress on a terminal.
  std::function<void(const char* stage)> progress;
};

// A value that the session keeps between runs, by the ONNX input and output that it replaces.
struct StateReport {
  std::string input, output;
  DType dtype = DType::kNone;
  Dims dims;
  uint64_t bytes = 0;
  bool in_place = false;  // else a run copies it when it ends
};

// A public input or output of the file.
struct PortReport {
  std::string name;
  DType dtype = DType::kNone;
  Dims dims;
  DType declared = DType::kNone;  // by the ONNX file; kNone: it does not declare any
  IntegerScale integers = {};     // of integers in place of a declared float
};

// A metric of a program: of the float model and of the quantized one.
struct ProgramValues {
  std::string name;
  double in_float = 0, now = 0;
};

// The contents of the file for one target.
struct ProfileReport {
  std::string target;
  size_t steps = 0;
  uint64_t arena_bytes = 0;
};

// An entry program, planned for the first target.
struct EntryReport {
  std::string shapes;  // as --shapes gives them
  size_t steps = 0;
  double multiply_adds = 0;  // of a run
  uint64_t arena_bytes = 0;
};

// The ONNX file that was written in place of a plan.
struct OnnxFileReport {
  int opset = 0;            // of ai.onnx
  size_t nodes = 0;         // of the main graph
  uint64_t bytes = 0;       // of the model
  uint64_t data_bytes = 0;  // of the file of external data; 0: there is none
};

struct ConversionReport {
  std::vector<PortReport> inputs, outputs;  // without states
  std::vector<SettledDim> settled_dims;
  double onnx_multiply_adds = 0;  // of a run of the ONNX graph, as lowered (cost/work.h)
  TypedProducts multiply_adds;    // of a run of the first target's plan
  uint64_t onnx_bytes = 0;        // of the model file, external data not counted
  size_t onnx_nodes = 0;          // functions inlined, main graph
  size_t lowered_nodes = 0;       // canonical operations before the passes
  size_t steps = 0;               // after them
  size_t elided_steps = 0;        // of these cost nothing
  PassReport passes;
  // The plan of the first target has:
  uint64_t arena_bytes = 0, arena_lower_bound = 0;
  uint64_t given_order_arena_bytes = 0;  // had the steps stayed in the order that they came in
  bool order_proved = false;             // no order of the steps has a smaller lower bound
  std::vector<StateReport> states;       // of the first target
  // Pairs (output, input) that could be states by their names and types: --state.
  std::vector<std::pair<std::string, std::string>> proposed_states;
  std::vector<StripedSteps>
      stripes;  // what --max-arena made of the steps, and by how much work: a share of all
  double extra_work = 0;
  std::vector<ProfileReport> profiles;  // in the order of the file
  std::vector<EntryReport> entries;     // with --shapes; all else is of the first one
  EmitSummary file;
  ModelTexts texts;                    // of the file
  std::set<std::string> replaced;      // keys whose value is that of --meta in place of the ONNX file's
  std::vector<std::string> not_kept;   // metadata of the ONNX file, with the reason
  std::optional<OnnxFileReport> onnx;  // with ConversionOptions::onnx, in place of the plan and `file`
  std::optional<QuantizeSummary> quantized;
  std::optional<ProgramValues> metric;  // whose share of the float one is quantized->accuracy
  std::vector<std::string> skipped;     // why samples were left out by --skip-damaged
  std::string withheld;  // why nothing was written, though the model could be converted; most often empty
  std::vector<LayerReport> layers;           // with details, where there are samples
  std::shared_ptr<const PlannedModel> plan;  // with details
  std::shared_ptr<const TypeLedger> ledger;  // every decision about a type
  NodeFates fates;                           // what became of each ONNX node
};

// The same computation with every float32, float16 and bfloat16 value in float64; integers stay. The
// reference that results are compared with.
Graph to_float64(const Graph& graph);

// Converts a file. nullopt: it is refused (diagnostics has the reasons), and nothing is written. Throws
// FileError.
std::optional<ConversionReport> convert_file(const std::filesystem::path& onnx,
                                             const std::filesystem::path& out,
                                             const ConversionOptions& options, Diagnostics& diagnostics);

}  // namespace sinter::convert

// What `sinter convert` is given on its command line, as text and numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/cli/commands.h"
#include "converter/cli/data_flags.h"
#include "converter/target/target_names.h"

namespace sinter::convert {

struct ConvertArguments {
  CommonOptions common;
  DataFlags data;
  CustomOpsOption custom_ops;
  std::vector<std::string> targets = {target_text(host_target())};
  std::string model, out, report, metric = "top1", evaluate_data, label, classes, weights = "stored", sign,
                                  quantize, activations, calibrate, calibrator, max_drop;
  std::optional<std::string> shape_sets;
  int64_t samples = -1, sequence = 0, block = 0;
  std::optional<double> min_sqnr;
  std::vector<std::string> keep_float, disabled_techniques;
  bool require_int8 = false, force_int8 = false, adaptive_rounding = false;
  std::vector<std::string> backends, shapes, dims, constants, trips, bounds, disabled;
  std::string dump_after;
  std::vector<std::string> input_types, output_types;
  std::string stop_after;
  double plan_seconds = 0;
  double metric_seconds = 0;  // as long as Metric has it
  int plan_threads = 0;       // as many as the target usually has cores
  std::optional<int64_t> max_arena;
  bool strict = false, strip = false, pack = false, packed_only = false, no_trial = false,
       no_winograd = false;
  bool prefer_float16 = false, prefer_bfloat16 = false;
  std::string float64 = "auto";
  std::vector<std::string> keep, states, initial_states, bindable;
  int64_t max_context = 0;  // 0: not given
  std::string kv_cache;     // empty: not given
};

// The flags of an ONNX model's shapes and constants, with their descriptions.
void add_shape_flags(CLI::App& command, ConvertArguments& a);

// All flags of the command with their descriptions.
void add_convert_flags(CLI::App& command, ConvertArguments& a);

}  // namespace sinter::convert

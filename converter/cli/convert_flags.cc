// The flags of `sinter convert`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "converter/cli/convert_arguments.h"
#include "converter/cli/flags.h"
#include "converter/convert.h"
#include "converter/export/onnx_export.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

std::string target_help() {
  std::string help;
  for (const NamedTarget& t : named_targets()) {
    const std::string features = feature_names(t);
    help += fmt::format("\n  {}: {}{}", t.name, t.description,
                        features.empty() ? "" : fmt::format(" (features: {})", features));
  }
  help += fmt::format("\n  {}: this machine, with the features of its processor", kNativeTarget);
  return help;
}

// "\n  NAME: what it does" for each, and their names for one_of().
template <class List, class Get>
std::pair<std::string, std::vector<std::string>> list_of(const List& list, const Get& get) {
  std::pair<std::string, std::vector<std::string>> all;
  for (const auto& item : list) {
    const auto& [name, description] = get(item);
    all.first += fmt::format("\n  {}: {}", name, description);
    all.second.emplace_back(name);
  }
  return all;
}

void add_state_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kState);
  add_value(
      c, "--state", a.states, "OUT=IN",
      "The session keeps this output and begins the next run with it as this input; auto: all pairs that "
      "the report proposes by their names and shapes");
  add_value(c, "--state-init", a.initial_states, "IN=FILE.npy",
            "The initial state of this input, instead of zeros");
  add_value(c, "--sequence", a.options.sequence, "N",
            "With --state: N samples in a row of --calibrate's and --evaluate's data are one sequence, which "
            "begins with the initial state (default: all of them)")
      ->check(CLI::Range(1, 1 << 30));
}

void add_cache_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kState);
  add_value(c, "--max-context", a.options.lowering.max_context, "N",
            "A decoder's past keys and values become states with room for N tokens, and the session keeps "
            "the position "
            "(docs/decoders.md)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  add_value(c, "--kv-cache", a.kv_cache, "TYPE",
            "With --max-context: the type in which keys and values are kept: float16, bfloat16, float8 or "
            "int8 (default: "
            "the model's)")
      ->check(one_of({"float16", "bfloat16", "float8", "int8"}));
}

void add_type_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kTypes);
  add_value(c, "--float64", a.float64, "auto|keep|narrow",
            "auto: float64 is kept where float32 could lose accuracy; keep: everywhere; narrow: nowhere")
      ->check(one_of({"auto", "keep", "narrow"}));
  add_value(c, "--keep", a.keep, "TENSOR=TYPE", "Computes and keeps a value in this type");
}

void add_narrow_type_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kTypes);
  c.add_flag(
      "--prefer-float16", a.prefer_float16,
      "Computes in float16 the values that are float16 in the model (all values of a float32 model), "
      "where the target has kernels for it (aarch64, cuda) and the rules of docs/numerics.md allow it");
  c.add_flag(
      "--prefer-bfloat16", a.prefer_bfloat16,
      "The same in bfloat16, where the target has kernels for it (cuda; x86_64+avx512bf16, by oneDNN)");
  add_value(
      c, "--weights", a.weights, "stored|widened",
      "stored: weights keep their narrow type (float16, float8, int4 with scales, ...) in the file and are "
      "widened when a session is created (default); widened: the file holds the widened weights")
      ->check(one_of({"stored", "widened"}));
}

void add_port_type_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kTypes);
  add_value(c, "--input-type", a.input_types, "[INPUT=]uint8|int8",
            "uint8: inputs that take a picture get bytes, and (pixel - mean) * scale, the model's own layout "
            "and order of channels are built into the model; --layout is that of the bytes. int8: the caller "
            "gives the integers that --quantize int8 would round the input to; inspect has their scale and "
            "zero point");
  add_value(c, "--output-type", a.output_types, "[OUTPUT=]int8|uint8|float32",
            "int8, uint8: outputs are left as the integers that --quantize int8 computes, which are (q - "
            "zero point) * scale; inspect has both. float32: as the model has them (default)");
}

std::vector<std::string> quantize_modes() {
  std::vector<std::string> modes{"int8", "int8x16"};
  for (const WeightOnlyMode& mode : kWeightOnlyModes) modes.emplace_back(mode.name);
  return modes;
}

void add_mode_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kQuantization);
  const std::vector<std::string> all = quantize_modes();
  const std::string modes = fmt::format("{}", fmt::join(all, "|"));
  add_value(
      c, "--quantize", a.quantize, modes.c_str(),
      "int8: computes products, and the operations between them, on 8-bit integers, with ranges from "
      "--calibrate's samples. int8x16: the same with 16-bit activations, which are more accurate and "
      "slower. int8w: weights in 8 bits and activations in float; int3w to int6w: weights in that many bits "
      "where that suffices. They need no samples. The closing table gives the SQNR, and remedies if it is "
      "too low")
      ->check(one_of(all));
  add_value(
      c, "--activations", a.activations, "int8",
      "int8: products with weights of few bits (--quantize int3w to int8w, or the model's own) round their "
      "activations to 8 bits, each block with a scale of its own, and are faster. --calibrate measures the "
      "effect")
      ->check(one_of({"int8"}));
}

void add_calibration_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kQuantization);
  add_value(c, "--calibrate", a.calibrate, "DATA",
            fmt::format(
                "Samples for --quantize: {}, or cmd:COMMAND that writes them. Weights alone (int3w to int8w, "
                "--activations) are only measured with them",
                kDataFormats));
  add_value(c, "--samples", a.options.samples, "N",
            "Calibrates with N samples, spread evenly over the data (with --state: the first N)")
      ->check(CLI::Range(1, 1 << 30));
  add_value(c, "--calibrator", a.calibrator, "RULE",
            "How ranges are chosen: best (the smallest expected error), minmax, moving-average, "
            "percentile[=99.99], entropy or mse");
  add_value(c, "--block", a.block, "N",
            "int3w to int8w: the number of weights that share a scale (default 32), an even number")
      ->check(CLI::Range(16, 65536));
  add_value(c, "--keep-float", a.options.quantization.keep_float, "NODE",
            "Keeps in float this operation, or the one that computes this value (names: --report FILE.json)");
  add_value(
      c, "--quantize-config", a.quantize_config, "FILE",
      "Takes ranges, bits and the operations on integers from FILE: an earlier run's --report FILE.json, "
      "AIMET's encodings, or torch's observers as JSON (docs/quantization.md)");
  c.add_flag(
      "--require-int8", a.options.require_int8,
      "If operations are kept in float, writes no file and lists them with their reasons (exit code 1). "
      "Where 8 bits are too few, 16-bit activations count as integers and are tried first");
  c.add_flag("--force-int8", a.options.quantization.force_int8,
             "Uses integers even where the cost table expects float to be faster");
  c.add_flag(
      "--adaptive-rounding", a.options.quantization.adaptive_rounding,
      "Tries adaptive rounding of weights without a time limit, instead of only where it takes seconds");
  const auto [techniques, names] =
      list_of(kTechniques, [](const Technique* t) { return std::pair(t->name, t->description); });
  add_value(c, "--disable-technique", a.options.quantization.disabled, "NAME",
            "Turns off a technique for the accuracy of --quantize:" + techniques)
      ->check(one_of(names));
}

void add_accuracy_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kAccuracy);
  add_value(
      c, "--min-sqnr", a.options.quantization.min_sqnr, "DB",
      "SQNR (signal-to-quantization-noise ratio), in dB, that every output must have (20: usable, 30: "
      "good, 40: close to float). As few operations as possible are kept in float for it (exit code 1 and "
      "no file if it cannot be reached). Measured on --calibrate's samples, or on --evaluate's with "
      "--metric sqnr")
      ->check(CLI::Range(0.0, 200.0));
  add_value(c, "--max-drop", a.max_drop, "0.5%",
            "The accuracy that quantization may lose on --evaluate's data. As few operations as possible are "
            "kept in float for it (exit code 1 and no file if it cannot be reached)");
  add_value(
      c, "--evaluate", a.evaluate_data, "DATA",
      "Samples, as for --calibrate, to measure the result with: labelled, or unlabelled with --metric sqnr");
  add_value(c, "--label", a.options.labels.name, "NAME",
            "Where --evaluate's data has the right answers: an array of the .npz, a key of the JSON list, a "
            "column of the CSV list. Sub-folders are labels without it");
  add_value(
      c, "--classes", a.options.labels.classes, "FILE",
      "The names of the classes, one a line in the order of the model's scores, where labels are names");
  add_value(
      c, "--metric", a.metric, "top1|top5|sqnr|cmd:PROGRAM",
      "The measure of --evaluate: top1, the share of right answers; top5, the share of answers that are "
      "among the five highest scores; sqnr, the SQNR of every output of a quantized model against the "
      "float one (no --label); cmd:PROGRAM, what a program prints that gets the outputs (docs/data.md)");
  add_value(c, "--metric-seconds", a.metric_seconds, "S",
            "The time that the program of --metric may take (default 600)")
      ->check(CLI::Range(0.0, 86400.0));
}

void add_target_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kTarget);
  add_value(
      c, "--target", a.targets, "NAME[+FEATURE...][,...]",
      fmt::format("The machine that runs the file, such as x86_64+avx2. The file runs on every machine of "
                  "that architecture; features describe the processor whose timings decide between "
                  "kernels, and where --quantize uses integers (those of the first name). Several names "
                  "give a plan for each; a session takes the first that fits its machine. Default: {}{}",
                  a.targets.front(), target_help()))
      ->delimiter(',')
      ->allow_extra_args(false);
  add_value(
      c, "--backends", a.backends, "LIST",
      "Plans only for these backends of the target (onednn,xnnpack,simd), the ones that the application "
      "links; the reference kernels are always included, onednn only if it is named or the target is "
      "native")
      ->delimiter(',')
      ->allow_extra_args(false);
  c.add_flag("--no-winograd", a.no_winograd,
             "Computes every convolution directly: slower, with less memory for weights and smaller errors");
}

void add_memory_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kMemory);
  add_value(
      c, "--max-arena", a.options.max_arena, "BYTES",
      "The maximum of activations and workspaces: steps that need more are computed in stripes of rows, "
      "some rows twice. If that is not enough, the smallest arena found is reported (exit code 1)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 60));
  add_value(c, "--plan-seconds", a.options.plan_seconds, "S",
            "Searches for a smaller arena for up to S seconds if it may not be minimal (the result may then "
            "depend on this machine)")
      ->check(CLI::Range(0.0, 86400.0));
  add_value(
      c, "--plan-threads", a.plan_threads, "N",
      "Plans workspaces for sessions of up to N threads (default 8); fewer threads may need less memory. "
      "Steps with too small a workspace use fewer threads")
      ->check(thread_counts());
  add_value(c, "--bindable", a.options.lowering.bindable, "NAME",
            "Plans this input or output so that callers can always bind it to their own memory");
}

void add_output_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kOutput);
  add_value(c, "--labels", a.labels, "[OUTPUT=]FILE",
            "The names of an output's classes, one a line in the order of its scores, for sinter run and for "
            "applications; OUTPUT where the model has several");
  add_value(
      c, "--meta", a.metadata, "KEY=VALUE",
      "A fact about the model for people and applications, such as license=MIT. It replaces one that the "
      "ONNX file has under this key; KEY= leaves that out");
  c.add_flag("--strip", a.options.emit.strip_names,
             "Omits the names of values and steps, and the metadata of the ONNX file, from the file");
  c.add_flag("--pack", a.pack,
             "Stores the weights as this machine's kernels read them as well, so that opening the file "
             "prepares nothing (sinter pack)");
  c.add_flag(
      "--packed-only", a.packed_only,
      "As --pack, without the constants that kernels read packed: the file is smaller, and other machines "
      "are refused");
  add_value(c, "--sign", a.sign, "NAME.key", "Signs the file with this secret key (sinter keygen)");
  c.add_flag("--no-trial", a.no_trial,
             "Skips the trial run on synthetic inputs, which finds NaN and infinity that the model does not "
             "produce");
}

void add_report_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kOutput);
  c.add_flag("--strict", a.strict, "Treats every warning as an error (exit code 1)");
  begin_group(c, flag_group::kReports);
  add_value(c, "--report", a.report, "FILE.json|.jsonl|.html",
            "Writes a report of every decision of the conversion");
  begin_group(c, flag_group::kPasses);
  const auto [passes, names] =
      list_of(all_passes(), [](const Pass& p) { return std::pair(p.name, p.description); });
  add_value(c, "--disable-pass", a.options.passes.disabled, "NAME", "Skips a pass:" + passes)
      ->check(one_of(names));
  add_value(c, "--dump-after", a.options.passes.dump_after, "NAME",
            "Prints the graph on stderr after this pass")
      ->check(one_of(names));
  add_value(
      c, "--stop-after", a.stop_after, "N|PASS[:N]",
      "Runs only the first N passes, those up to PASS, or of PASS only the first N rewrites, to find the "
      "one that changes a result");
}

}  // namespace

void add_shape_flags(CLI::App& c, ConvertArguments& a) {
  begin_group(c, flag_group::kShapes);
  add_value(c, "--shape", a.shapes, "INPUT=1,3,224,224",
            "The shape of an input with open dimensions; scalar: of an input that has no dimensions");
  add_value(
      c, "--dim", a.dims, "NAME=N|MIN..MAX",
      "The size of a named dimension; MIN..MAX: any size in this range, which the caller gives with the "
      "inputs of a run");
  add_value(c, "--const", a.constants, "NAME=NUMBER|FILE.npy",
            "Turns an input into a constant: an array, or a number for all of its elements");
  add_value(c, "--max-trips", a.trips, "NODE=N", "The maximum number of iterations of a Loop node");
  add_value(c, "--bound", a.bounds, "NODE=N", "The maximum of the bounded dimension in the node's results");
}

void add_convert_flags(CLI::App& c, ConvertArguments& a) {
  c.add_option("model", a.model, "The ONNX file")->required();
  add_value(c, "-o,--output", a.out, "FILE", "The file to write")->required()->group(flag_group::kOutput);
  add_shape_flags(c, a);
  add_value(c, "--shapes", a.shape_sets, "\"batch=1,seq=16; batch=8,seq=128\"",
            "Several shapes in one file, which share constants and packed weights. Each set has the sizes of "
            "dimensions by name (as --dim) or the shapes of inputs (as --shape)");
  a.data.add_to(c);
  add_state_flags(c, a);
  add_cache_flags(c, a);
  add_type_flags(c, a);
  add_narrow_type_flags(c, a);
  add_port_type_flags(c, a);
  add_mode_flags(c, a);
  add_calibration_flags(c, a);
  add_accuracy_flags(c, a);
  add_target_flags(c, a);
  add_memory_flags(c, a);
  add_output_flags(c, a);
  add_report_flags(c, a);
  a.custom_ops.add_to(c);
}

void add_quantize_flags(CLI::App& c, ConvertArguments& a) {
  c.add_option("model", a.model, "The ONNX file")->required();
  add_value(c, "-o,--output", a.out, "FILE", "The ONNX file to write")
      ->required()
      ->group(flag_group::kOutput);
  add_shape_flags(c, a);
  a.data.add_to(c);
  add_state_flags(c, a);
  add_type_flags(c, a);
  begin_group(c, flag_group::kQuantization);
  const std::vector<std::string> modes{"int8", "int8x16", "int8w", "int4w"};
  add_value(c, "--quantize", a.quantize, fmt::format("{}", fmt::join(modes, "|")).c_str(),
            "int8 (default): products, and the operations between them, on 8-bit integers, with ranges from "
            "--calibrate's samples. int8x16: the same with 16-bit activations, which need opset 21. int8w, "
            "int4w: weights in that many bits and activations in float, which need no samples")
      ->check(one_of(modes));
  add_calibration_flags(c, a);
  add_accuracy_flags(c, a);
  begin_group(c, flag_group::kOutput);
  add_value(
      c, "--opset", a.onnx.opset, "N",
      fmt::format(
          "The version of ai.onnx of the new model, {} to {} (default: {}, and 21 for integers of 4 or 16 "
          "bits and scales for blocks)",
          kOldestWrittenOpset, kNewestWrittenOpset, kUsualOpset))
      ->check(CLI::Range(kOldestWrittenOpset, kNewestWrittenOpset));
  c.add_flag(
      "--microsoft", a.onnx.microsoft,
      "Writes products with weights of few bits as MatMulNBits of com.microsoft, which onnxruntime computes "
      "without widening them, and other operators of that domain where ai.onnx has none");
  c.add_flag("--external-data", a.onnx.external_data,
             "Writes weights to FILE.data beside the model; without the flag only where the model has more "
             "than 2 GB");
  add_report_flags(c, a);
  a.custom_ops.add_to(c);
}

}  // namespace sinter::convert

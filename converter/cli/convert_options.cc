#include "converter/cli/convert_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "converter/cli/host_session.h"
#include "converter/cli/terminal.h"
#include "converter/data/file_list.h"
#include "converter/data/stated_preprocessing.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/input_shapes.h"
#include "converter/quantize/weights/weight_only.h"
#include "converter/target/target_names.h"
#include "converter/target/target_platforms.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// Returns the parts of "NAME=TEXT", split at the last '=' (names may hold any character).
std::pair<std::string, std::string> split(const std::string& text, const char* flag, const char* form) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw UsageError(fmt::format("{} {}: the argument must have the form {} {}", flag, text, flag, form));
  return {text.substr(0, at), text.substr(at + 1)};
}

constexpr const char* kConstForm = "NAME=NUMBER or NAME=FILE.npy";

// Returns the number that the whole text is; nullopt: it is a path.
std::optional<double> one_number(std::string_view text) {
  double x = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

int64_t number(std::string_view text, const std::string& where) {
  const std::optional<int64_t> size = parse_size(text);
  if (!size)
    throw UsageError(fmt::format("{}: '{}' is not a valid size; give an integer of at least 0", where, text));
  return *size;
}

// Returns the whole-byte type that inspect prints so. Throws UsageError for another name.
DType named_dtype(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (int t = 1; t < static_cast<int>(DType::kCount); ++t) {
    const auto dtype = static_cast<DType>(t);
    if (byte_width(dtype) == 0) continue;
    if (name == dtype_name(dtype)) return dtype;
    names.emplace_back(dtype_name(dtype));
  }
  throw UsageError(fmt::format("{}: '{}' is not a type; {}", where, name, advise_name(names, name)));
}

// Enters the value that a repeatable flag gives for a name. Given twice it must be the same.
template <class Map>
void enter(Map& map, const char* flag, const std::string& name, typename Map::mapped_type value) {
  const auto [at, fresh] = map.emplace(name, value);
  if (!fresh && at->second != value)
    throw UsageError(fmt::format("{} {} is given twice with different values; give it once", flag, name));
}

LoweringOptions lowering_options(const ConvertArguments& a) {
  LoweringOptions options = a.options.lowering;
  options.custom_ops = a.custom_ops.load();
  for (const std::string& item : a.shapes) {
    const auto [name, list] =
        split(item, "--shape", fmt::format("INPUT=1,3,224,224 or INPUT={}", kScalarShape).c_str());
    Dims dims;
    for (size_t at = list == kScalarShape ? list.size() + 1 : 0; at <= list.size();) {
      const size_t comma = std::min(list.find(',', at), list.size());
      dims.push_back(number(std::string_view(list).substr(at, comma - at), "--shape " + item));
      at = comma + 1;
    }
    enter(options.shapes, "--shape", name, dims);
  }
  for (const std::string& item : a.dims) {
    const auto [name, size] = split(item, "--dim", "NAME=N or NAME=MIN..MAX");
    const std::string where = "--dim " + item;
    if (const size_t dots = size.find(".."); dots != std::string::npos)
      enter(options.ranges, "--dim", name,
            {number(size.substr(0, dots), where), number(size.substr(dots + 2), where)});
    else
      enter(options.dims, "--dim", name, number(size, where));
  }
  std::map<std::string, std::string> constants;
  for (const std::string& item : a.constants) {
    const auto [name, value] = split(item, "--const", kConstForm);
    enter(constants, "--const", name, value);
  }
  for (const auto& [name, value] : constants) {
    const std::optional<double> number = one_number(value);
    options.constants[name] = number ? Constant::scalar(DType::kFloat64, *number) : read_npy(value);
  }
  for (const std::string& item : a.states) {
    if (item == "auto")
      options.all_states = true;
    else
      options.states.push_back(split(item, "--state", "OUT=IN, or auto"));
  }
  std::map<std::string, std::string> initial;
  for (const std::string& item : a.initial_states) {
    const auto [name, file] = split(item, "--state-init", "IN=FILE.npy");
    enter(initial, "--state-init", name, file);
  }
  for (const auto& [name, file] : initial) options.initial_states[name] = read_npy(file);
  if (!a.kv_cache.empty())
    options.kv_cache =
        a.kv_cache == "float8" ? DType::kFloat8E4M3FN : named_dtype(a.kv_cache, "--kv-cache " + a.kv_cache);
  options.keep_float64 = a.float64 == "keep";
  for (const std::string& item : a.keep) {
    const auto [name, type] = split(item, "--keep", "TENSOR=float32");
    enter(options.keep, "--keep", name, named_dtype(type, "--keep " + item));
  }
  for (const std::string& item : a.trips) {
    const auto [name, n] = split(item, "--max-trips", "NODE=N");
    enter(options.max_trips, "--max-trips", name, number(n, "--max-trips " + item));
  }
  for (const std::string& item : a.bounds) {
    const auto [name, n] = split(item, "--bound", "NODE=N");
    enter(options.bounds, "--bound", name, number(n, "--bound " + item));
  }
  return options;
}

// Returns the number that "0.5%" or "0.005" states.
double fraction(std::string_view text, const char* flag) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double x = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), x);
  if (percent) x /= 100;
  if (fault != std::errc() || end != digits.data() + digits.size() || !(x >= 0 && x <= 1))
    throw UsageError(
        fmt::format("{} {}: this is not a share of the samples; give one such as 0.5% or 0.005", flag, text));
  if (!percent && x >= 0.5)
    throw UsageError(fmt::format("{} {}: that is {:g} % of the samples; write {}% for per cent", flag, text,
                                 100 * x, text));
  return x;
}

// --dump-after and --stop-after mean passes that run.
void check_passes(const PassOptions& o, const std::string& stop_after) {
  if (o.dump_after.empty()) return;
  if (std::find(o.disabled.begin(), o.disabled.end(), o.dump_after) != o.disabled.end())
    throw UsageError(fmt::format("--dump-after {}: --disable-pass leaves this pass out; give one of the two",
                                 o.dump_after));
  size_t number = 0;
  for (const Pass& pass : all_passes())
    if (++number > o.stop.passes && o.dump_after == pass.name)
      throw UsageError(fmt::format("--dump-after {}: this is pass {}, and --stop-after {} stops before it",
                                   o.dump_after, number, stop_after));
}

// Returns "a, b, c", for messages.
template <class List, class Name>
std::string listed(const List& list, const Name& name) {
  std::string text;
  for (const auto& item : list) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(item));
  return text;
}

// Flags that affect a quantization only are refused where they would do nothing.
void check_flags(const ConvertArguments& a) {
  const bool weights_only = weight_only_bits(a.quantize) != 0;
  const std::pair<bool, const char*> any[] = {{!a.calibrate.empty() && a.activations.empty(), "--calibrate"},
                                              {a.block != 0, "--block"}};
  const std::pair<bool, const char*> integers[] = {
      {a.options.quantization.min_sqnr.has_value(), "--min-sqnr"},
      {!a.max_drop.empty(), "--max-drop"},
      {!a.options.quantization.keep_float.empty(), "--keep-float"},
      {!a.options.quantization.disabled.empty(), "--disable-technique"},
      {!a.quantize_config.empty(), "--quantize-config"},
      {a.options.require_int8, "--require-int8"},
      {a.options.quantization.adaptive_rounding, "--adaptive-rounding"},
      {a.options.quantization.force_int8, "--force-int8"}};
  if (a.quantize.empty()) {
    std::vector<std::pair<bool, const char*>> all(std::begin(any), std::end(any));
    all.insert(all.end(), std::begin(integers), std::end(integers));
    for (const auto& [given, flag] : all)
      if (given)
        throw UsageError(
            fmt::format("{} is for --quantize: add --quantize int8 (or int8x16, int8w, int4w, ...)", flag));
    if (!a.calibrator.empty()) throw UsageError("--calibrator is for --quantize int8 and int8x16");
  } else if (!weights_only && !a.activations.empty()) {
    throw UsageError(
        fmt::format("--activations is for weights of few bits: --quantize {} rounds all activations "
                    "already; remove the option, or use --quantize int8w or int4w",
                    a.quantize));
  } else if (weights_only) {
    for (const auto& [given, flag] : integers)
      if (given)
        throw UsageError(
            fmt::format("{} is for --quantize int8 and int8x16: with {} activations are kept in float, and "
                        "the option has no effect",
                        flag, a.quantize));
  }
  if (!a.kv_cache.empty() && a.options.lowering.max_context == 0)
    throw UsageError("--kv-cache is for --max-context: add --max-context N");
  if (a.options.sequence > 0 && a.states.empty() && a.options.lowering.max_context == 0)
    throw UsageError("--sequence counts the samples between two resets of the state; add --state OUT=IN");
  if (a.options.samples >= 0 && a.calibrate.empty())
    throw UsageError("--samples limits the samples of --calibrate, which is missing; add --calibrate DATA");
}

const HalfType* preferred(const ConvertArguments& a) {
  if (a.prefer_float16 && a.prefer_bfloat16)
    throw UsageError(fmt::format("{} and {} exclude each other", kFloat16Half.flag, kBFloat16Half.flag));
  return a.prefer_float16 ? &kFloat16Half : a.prefer_bfloat16 ? &kBFloat16Half : nullptr;
}

void set_quantization(const ConvertArguments& a, ConversionOptions* options) {
  check_flags(a);
  if (a.quantize.empty() && a.activations.empty()) return;
  const bool weights_only = a.quantize.empty() || weight_only_bits(a.quantize) != 0;
  if (a.calibrate.empty() && !weights_only)
    throw UsageError(fmt::format(
        "--quantize {} needs --calibrate DATA: representative samples of the inputs, as pictures, "
        "sounds or arrays ({}; the first axis of an array counts the samples), or cmd:COMMAND "
        "that writes them; without samples, --quantize int8w rounds only the weights",
        a.quantize, kDataFormats));
  if (options->prefer != nullptr)
    throw UsageError(fmt::format("{} and {} exclude each other",
                                 a.quantize.empty() ? "--activations" : "--quantize", options->prefer->flag));
  if (weights_only && !a.calibrator.empty())
    throw UsageError(
        fmt::format("--calibrator chooses ranges of activations, which are kept in float with --quantize {}; "
                    "--calibrate alone measures the result",
                    a.quantize));
  if (!weights_only && a.block != 0) throw UsageError("--block is for --quantize int3w to int8w");
  if (weights_only && a.weights == "widened")
    throw UsageError(
        a.quantize.empty()
            ? "--weights widened leaves no weights of few bits for --activations; remove one of them"
            : fmt::format("--weights widened would undo --quantize {}", a.quantize));
  if (a.block % 2 != 0) throw UsageError("--block takes an even number");
  if (a.block != 0) options->block = a.block;
  const auto rule = parse_calibrator(a.calibrator.empty() ? "best" : a.calibrator);
  if (!rule)
    throw UsageError(
        fmt::format("--calibrator {}: this is not a rule; the rules are best, minmax, moving-average, "
                    "percentile[=50 to 100], entropy and mse",
                    a.calibrator));
  options->quantize = a.quantize;
  options->round_activations = !a.activations.empty();
  if (a.quantize == "int8x16") options->quantization.activations = DType::kInt16;
  options->calibrate = a.calibrate;
  options->quantization.calibrator = *rule;
  if (!a.quantize_config.empty()) options->quantization.settings = read_quantize_settings(a.quantize_config);
  options->quantization.runner.backends = options->backends;
  if (!a.max_drop.empty()) {
    if (a.evaluate_data.empty())
      throw UsageError("--max-drop needs --evaluate DATA --label NAME to measure the accuracy with");
    if (a.metric == "sqnr")
      throw UsageError(
          "--max-drop limits the loss of right answers, --metric sqnr measures noise: give --min-sqnr DB "
          "with it, or --max-drop with --evaluate DATA --label NAME --metric top1");
    if (a.options.quantization.min_sqnr)
      throw UsageError("--max-drop and --min-sqnr both limit the loss; give one of them");
    options->quantization.max_drop = fraction(a.max_drop, "--max-drop");
  }
}

// --metric sqnr needs two models, the float one and the quantized, and no labels.
void check_metric(const ConvertArguments& a) {
  const Metric metric = parse_metric(a.metric);
  if (a.evaluate_data.starts_with("cmd:"))
    throw UsageError(
        "--evaluate takes samples, not a command; give --evaluate DATA, and the program of a metric of your "
        "own by --metric cmd:PROGRAM");
  if (a.metric_seconds > 0 && metric.kind != Metric::Kind::kProgram)
    throw UsageError("--metric-seconds is for --metric cmd:PROGRAM; leave it out");
  if (metric.kind == Metric::Kind::kProgram) {
    if (a.evaluate_data.empty())
      throw UsageError("--metric cmd:PROGRAM needs --evaluate DATA: samples whose outputs the program gets");
    if (!a.options.labels.name.empty() || !a.options.labels.classes.empty())
      throw UsageError(
          "--metric cmd:PROGRAM takes neither --label nor --classes: the program has its own right answers");
  }
  if (metric.kind != Metric::Kind::kSqnr) return;
  if (a.quantize.empty())
    throw UsageError(
        "--metric sqnr measures the effect of --quantize on the outputs: add --quantize int8 (or int8x16, "
        "int8w, int4w); sinter compare compares any two models");
  if (a.evaluate_data.empty())
    throw UsageError("--metric sqnr needs --evaluate DATA: samples to measure the SQNR of the outputs with");
  if (!a.options.labels.name.empty())
    throw UsageError(
        "--metric sqnr compares outputs with those of the float model: remove --label, or give --metric top1 "
        "to count right answers");
}

// Sets the targets, and those of their backends to plan for.
void set_targets(const ConvertArguments& a, ConversionOptions* options) {
  options->targets.clear();
  std::vector<std::string> names;
  for (const std::string& text : a.targets) {
    std::string fault;
    std::optional<Target> target = parse_target(text, &fault);
    if (!target) throw UsageError(fmt::format("--target {}: {}", text, fault));
    if (a.plan_threads > 0) target->cores = a.plan_threads;
    const bool twice =
        std::any_of(options->targets.begin(), options->targets.end(),
                    [&](const Target& other) { return target_text(other) == target_text(*target); });
    if (twice) throw UsageError(fmt::format("--target {}: this target is given twice; give it once", text));
    options->targets.push_back(*target);
    if (text == kNativeTarget) options->native_target = *target;
    for (const Platform* p : platforms_serving(*target))
      if (std::find(names.begin(), names.end(), p->name) == names.end()) names.emplace_back(p->name);
  }
  names.emplace_back("reference");
  for (const std::string& name : a.backends)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UsageError(fmt::format("--backends {}: target {} has no such backend; {}", name,
                                   fmt::join(a.targets, ","), advise_name(names, name)));
  if (!a.backends.empty()) options->plan_backends = a.backends;
}

// A plan for this machine is run by this program, which must have the backends that are named. Other targets
// are for other builds.
void check_backends_here(const ConvertArguments& a, const ConversionOptions& options) {
  if (!options.native_target) return;
  const std::vector<std::string> here = host_backend_names();
  const auto is_built = [&](const std::string& name) {
    return std::find(here.begin(), here.end(), name) != here.end();
  };
  for (const std::string& name : a.backends)
    if (!is_built(name))
      throw UsageError(fmt::format("--backends {} --target {}: this build has no such backend; {}", name,
                                   kNativeTarget, advise_name(here, name)));
  if (options.prefer == nullptr) return;
  for (const Platform* p : platforms_serving(*options.native_target))
    if (computes_half(*p, *options.native_target, options.prefer->dtype) && !is_built(p->name))
      throw UsageError(
          fmt::format("{} --target {}: this build has no {} backend, which computes in {} on this machine; "
                      "remove the option, "
                      "build Sinter with {}, or give --target {} for a machine whose runtime has it",
                      options.prefer->flag, kNativeTarget, p->name, options.prefer->name, p->name,
                      target_text(*options.native_target)));
}

// Returns the keys and values of --meta, of which only a value may contain '='.
std::map<std::string, std::string> metadata_of(const ConvertArguments& a) {
  std::map<std::string, std::string> metadata;
  for (const std::string& item : a.metadata) {
    const size_t equals = item.find('=');
    const std::string key = item.substr(0, equals), shown = printable(key);
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("--meta {}: the argument must have the form --meta KEY=VALUE", item));
    const std::string value = item.substr(equals + 1);
    if (key.size() > detail::kMaxKeyBytes)
      throw UsageError(fmt::format("--meta {}: the key has {} bytes, more than {}; shorten it", shown,
                                   key.size(), detail::kMaxKeyBytes));
    if (key.starts_with(kOwnKeys) && !value.empty())
      throw UsageError(fmt::format(
          "--meta {}: the program keeps the keys {}* for what it was given; give --mean, --scale, "
          "--resize, --layout or --channel-order, or choose another key",
          shown, kOwnKeys));
    if (value.size() > detail::kMaxMetadataBytes)
      throw UsageError(fmt::format("--meta {}: the value has {} bytes, more than {}; shorten it", shown,
                                   value.size(), detail::kMaxMetadataBytes));
    if (as_utf8(item) != item)
      throw UsageError(fmt::format("--meta {}: the text is not UTF-8; give it in UTF-8", printable(item)));
    enter(metadata, "--meta", key, value);
  }
  return metadata;
}

}  // namespace

// Names of outputs and paths may hold '=': the longest text that is a file is the path.
std::vector<LabelFile> label_files(const ConvertArguments& a) {
  std::vector<LabelFile> files;
  for (const std::string& item : a.labels) {
    std::error_code ignored;
    LabelFile labels{"", item};
    for (size_t at = 0; !std::filesystem::exists(labels.file, ignored);) {
      const size_t equals = item.find('=', at);
      if (equals == std::string::npos) break;
      labels = {item.substr(0, equals), item.substr(equals + 1)};
      at = equals + 1;
    }
    if (labels.file.empty() || (item.starts_with('=')))
      throw UsageError(
          fmt::format("--labels {}: the argument must have the form --labels [OUTPUT=]FILE", item));
    files.push_back(std::move(labels));
  }
  return files;
}

std::vector<std::string> constant_files(const ConvertArguments& a) {
  std::vector<std::string> files;
  for (const std::string& item : a.constants)
    if (const std::string value = split(item, "--const", kConstForm).second; !one_number(value))
      files.push_back(value);
  for (const std::string& item : a.initial_states)
    files.push_back(split(item, "--state-init", "IN=FILE.npy").second);
  return files;
}

void check_labels(const ConvertArguments& a) {
  const bool has_labels = parse_metric(a.metric).has_labels();
  if (!a.options.labels.classes.empty() && (a.evaluate_data.empty() || !has_labels))
    throw UsageError("--classes names the labels of --evaluate DATA, which is missing; add --evaluate DATA");
  if (a.evaluate_data.empty() || !has_labels || labels_itself(a.evaluate_data)) return;
  if (kind_of_file(a.evaluate_data) == FileKind::kJsonList) {
    if (a.options.labels.name.empty())
      throw UsageError(
          "--evaluate needs --label NAME: the key of the right answers in the entries of the list");
    return;
  }
  if (const FileKind kind = kind_of_file(a.evaluate_data);
      kind != FileKind::kArrays && kind != FileKind::kOther)
    throw UsageError(
        fmt::format("--evaluate {}: one file of this kind has no label; give a list (.csv, .json) or a "
                    "folder with a sub-folder for each class",
                    a.evaluate_data));
  const Arrays data = read_arrays(a.evaluate_data);
  const std::string names = listed(data, [](const auto& item) { return "'" + item.first + "'"; });
  if (a.options.labels.name.empty())
    throw UsageError(
        fmt::format("--evaluate needs --label NAME: the array of right answers, one of {} in {}; without "
                    "labels, --metric sqnr measures the effect of --quantize on the outputs",
                    names, a.evaluate_data));
  if (!find_array(data, a.options.labels.name))
    throw DataError(fmt::format("--label {}: {} has no such array; it has {}", a.options.labels.name,
                                a.evaluate_data, names));
}

ConversionOptions conversion_options(const ConvertArguments& a) {
  if (a.evaluate_data.empty() && !a.options.labels.name.empty())
    throw UsageError("--label names an array of --evaluate DATA, which is missing; add --evaluate DATA");
  check_metric(a);
  ConversionOptions options = a.options;
  if (!a.stop_after.empty()) options.passes.stop = parse_pass_stop(a.stop_after);
  check_passes(options.passes, a.stop_after);
  options.lowering = lowering_options(a);
  if (a.shape_sets) options.shape_sets = parse_shape_sets(*a.shape_sets);
  set_targets(a, &options);
  options.strict = a.strict;
  options.label_files = label_files(a), options.metadata = metadata_of(a);
  options.evaluate = a.evaluate_data, options.metric = parse_metric(a.metric);
  if (a.metric_seconds > 0) options.metric.seconds = a.metric_seconds;
  options.narrow_float64 = a.float64 == "narrow";
  options.prefer = preferred(a);
  options.backends = host_backends({});
  check_backends_here(a, options);
  set_quantization(a, &options);
  options.winograd = !a.no_winograd;
  options.stored_weights = a.weights == "stored";
  options.details = !a.report.empty();
  options.preprocessing = a.data.preprocessing();
  options.public_types.inputs =
      set_byte_inputs(port_types("--input-type", a.input_types), &options.preprocessing, &options.lowering);
  options.public_types.outputs = port_types("--output-type", a.output_types);
  if (a.quantize != "int8") options.public_types.remedy = "quantize with --quantize int8";
  options.passes.dump = [](const std::string& text) { print_messages(text); };
  return options;
}

}  // namespace sinter::convert

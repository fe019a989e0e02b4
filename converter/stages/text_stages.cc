// The texts of the file: facts of the ONNX file, the preprocessing, and what --meta and --labels give.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "converter/data/class_names.h"
#include "converter/data/stated_preprocessing.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/byte_inputs.h"
#include "converter/import/own_labels.h"
#include "converter/stages/conversion.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// What is taken from an ONNX file without being asked for: bytes of a text and of all, texts, and bytes of
// class names. Exporters put vocabularies there.
constexpr size_t kMostCarried = 4096, kMostCarriedInAll = 16384, kMostCarriedTexts = 256,
                 kMostCarriedNames = 65536;

// Returns why a text cannot be in the file; empty: it can.
std::string fault_of(std::string_view text, size_t most) {
  if (text.size() > most) return fmt::format("has {} bytes, more than {}", text.size(), most);
  return as_utf8(text) == text ? "" : "is not UTF-8";
}

// Adds a text of the ONNX file, or notes why it is not kept. `bytes`: of those that are kept.
void carry(const std::string& key, const std::string& value, size_t* bytes, Conversion& c) {
  std::map<std::string, std::string>& metadata = c.report.texts.metadata;
  if (value.empty()) return;
  std::string fault = key.empty() ? "does not have a name" : fault_of(value, kMostCarried);
  if (fault.empty() && !fault_of(key, detail::kMaxKeyBytes).empty()) fault = "has a name that cannot be kept";
  if (fault.empty() && metadata.contains(key)) fault = "has the name of another fact";
  if (fault.empty() && key.starts_with(kOwnKeys)) fault = "has a name that the program keeps for itself";
  if (fault.empty() && metadata.size() >= kMostCarriedTexts)
    fault = fmt::format("is behind the first {} texts", kMostCarriedTexts);
  if (fault.empty() && *bytes + key.size() + value.size() > kMostCarriedInAll)
    fault = fmt::format("would be more than {} bytes with the others", kMostCarriedInAll);
  if (!fault.empty()) {
    c.report.not_kept.push_back(fmt::format("'{}' {}", key, fault));
    return c.diagnostics.note(
        "", "", fmt::format("the ONNX file's metadata '{}' is not kept, because it {}", key, fault));
  }
  *bytes += key.size() + value.size();
  metadata[key] = value;
}

// Adds what the ONNX file states about itself. `without_names`: all but its class names.
void carry_all(bool without_names, Conversion& c) {
  const ImportedModel& m = *c.imported;
  size_t bytes = 0;
  const auto take = [&](const std::string& key, const std::string& value) { carry(key, value, &bytes, c); };
  take("model.domain", m.domain);
  take("model.version", m.version == 0 ? "" : fmt::format("{}", m.version));
  take("model.description", m.doc);
  for (const auto& [key, value] : m.metadata)
    if (!without_names || key != kNamesKey) take(key, value);
}

// Whether an input besides those of bytes takes pictures, to which mean, scale and order apply.
bool takes_numbers_of_pictures(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId id) {
    const Value& v = graph.value(id);
    return takes_bytes({}, {v.name, v.dtype, v.dims});
  });
}

// Throws UsageError unless an input of the model takes what the flags describe. They are the application's,
// where the conversion reads no data.
void check_stated(const Preprocessing& how, const Graph& graph) {
  if (how.given().empty() || how.built_in) return;
  for (const ValueId id : graph.inputs) {
    const Value& v = graph.value(id);
    int64_t channels = 0;
    try {
      channels = picture_axes({v.name, v.dtype, v.dims}, how).channels;
    } catch (const DataError&) {  // no picture
      if (const auto sound = sound_axes(v.dims)) channels = sound->channels;
    }
    if (channels == 0 || (!is_float(v.dtype) && how.changes_numbers())) continue;
    (void)mean_of_channels(how, channels), (void)scale_of_channels(how, channels);
    return;
  }
  throw UsageError(
      fmt::format("{}: pictures and sounds are converted by this, but the model takes neither; leave it out",
                  how.given()));
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.outputs)
    if (graph.state_written(id) == nullptr) names.push_back(graph.value(id).name);
  return names;
}

// Returns the output of a name, or the only one for an empty name.
const Value& labelled_output(const Graph& graph, const LabelFile& labels) {
  const std::vector<std::string> names = output_names(graph);
  if (labels.output.empty() && names.size() != 1)
    throw UsageError(
        fmt::format("--labels {}: the model has {} outputs; give --labels OUTPUT={}, with one of {}",
                    labels.file, names.size(), labels.file, fmt::join(names, ", ")));
  const std::string& name = labels.output.empty() ? names.front() : labels.output;
  for (const ValueId id : graph.outputs)
    if (graph.value(id).name == name && graph.state_written(id) == nullptr) return graph.value(id);
  throw UsageError(fmt::format("--labels {}={}: the model has no output '{}'; {}", labels.output, labels.file,
                               labels.output, advise_name(names, labels.output)));
}

// Returns why the names are not those of the output's classes, in some shape set: the place among the names,
// counted from 0, and the sentence. Nothing: they are.
std::optional<std::pair<size_t, std::string>> misfit(size_t names, const LabelFile& labels, Conversion& c) {
  for (const Entry& entry : c.entries) {
    const Value& v = labelled_output(entry.graph, labels);
    const std::string output = fmt::format("output '{}' ({})", v.name, to_string(v.dtype, v.dims));
    if (v.dims.empty())
      return {{0, fmt::format("{} is a single number, without classes; leave --labels out", output)}};
    const size_t axis = class_axis(v.dims);
    for (const BoundedDim& bounded : v.bounded_dims)
      if (static_cast<size_t>(bounded.axis) == axis)
        return {
            {0, fmt::format("the length of axis {} of {} depends on the run, and labels need a fixed one; "
                            "leave --labels out",
                            axis, output)}};
    const auto classes = static_cast<size_t>(v.dims[axis]);
    if (names != classes)
      return {{std::min(names, classes),
               fmt::format("{}: {} has {} classes along axis {}; give one name for each",
                           names < classes ? "the name is missing" : "this name is one too many", output,
                           classes, axis)}};
  }
  return {};
}

void read_labels(const LabelFile& labels, Conversion& c) {
  std::vector<std::string> names = read_class_names(labels.file);
  for (size_t i = 0; i < names.size(); ++i)
    if (const std::string fault = fault_of(names[i], detail::kMaxLabelBytes); !fault.empty())
      throw DataError(fmt::format("{}: the name {}; {}", place_of_name(labels.file, i), fault,
                                  fault.starts_with("has") ? "shorten it" : "save the file as UTF-8"));
  if (const auto fault = misfit(names.size(), labels, c))
    throw DataError(fmt::format("{}: {}", place_of_name(labels.file, fault->first), fault->second));
  const std::string& output = labelled_output(c.graph(), labels).name;
  if (!c.report.texts.labels.emplace(output, std::move(names)).second)
    throw UsageError(fmt::format("--labels {}={}: output '{}' has another file of labels; give one", output,
                                 labels.file, output));
}

// Adds the class names that the ONNX file has, where they are those of an output without --labels. Returns
// whether the list in its metadata is among them.
bool carry_names(Conversion& c) {
  size_t bytes = 0;
  bool has_list = false;
  const std::vector<std::string> outputs = output_names(c.graph());
  for (OwnLabels& own : own_labels(*c.imported)) {
    if (own.output.empty() ? outputs.size() != 1 || c.options.metadata.contains(kNamesKey)
                           : std::find(outputs.begin(), outputs.end(), own.output) == outputs.end())
      continue;
    const LabelFile place{own.output, ""};
    if (misfit(own.names.size(), place, c)) continue;
    const std::string& output = labelled_output(c.graph(), place).name;
    if (c.report.texts.labels.contains(output)) continue;
    std::string fault;
    for (const std::string& name : own.names) {
      if (fault.empty()) fault = fault_of(name, detail::kMaxLabelBytes);
      bytes += name.size();
    }
    if (fault.empty() && bytes > kMostCarriedNames)
      fault = fmt::format("would be more than {} bytes", kMostCarriedNames);
    if (!fault.empty()) {
      c.report.not_kept.push_back(fmt::format("class names of '{}', of which one {}", output, fault));
      continue;
    }
    has_list |= own.output.empty();
    c.report.texts.labels[output] = std::move(own.names);
  }
  return has_list;
}

}  // namespace

bool keeps_facts(const ConversionOptions& options) {
  return !options.onnx && !options.emit.strip_names &&
         std::any_of(options.targets.begin(), options.targets.end(),
                     [](const Target& t) { return t.architecture != Architecture::kCortexM; });
}

bool settle_texts(Conversion& c) {
  ModelTexts& texts = c.report.texts;
  for (const LabelFile& labels : c.options.label_files) read_labels(labels, c);
  if (keeps_facts(c.options)) {
    if (!c.options.reads_data()) check_stated(c.options.preprocessing, c.graph());
    carry_all(carry_names(c), c);
    const Preprocessing& how = c.options.preprocessing;
    texts.metadata.merge(stated_preprocessing(how, !how.built_in || takes_numbers_of_pictures(c.graph())));
  }
  for (const auto& [key, value] : c.options.metadata) {
    if (texts.metadata.erase(key) > 0 && !value.empty()) c.report.replaced.insert(key);
    if (!value.empty()) texts.metadata[key] = value;
  }
  size_t bytes = 0;
  for (const auto& [key, value] : texts.metadata) bytes += key.size() + value.size();
  for (const auto& [output, names] : texts.labels)
    for (const std::string& name : names) bytes += name.size();
  if (texts.metadata.size() > detail::kMaxMetadata)
    throw UsageError(
        fmt::format("the file would have {} facts about the model, more than {}; give fewer --meta",
                    texts.metadata.size(), detail::kMaxMetadata));
  if (bytes > kMostTextBytes)
    throw UsageError(
        fmt::format("--meta and --labels have {} bytes of text, more than {}, which a device would "
                    "keep in memory; keep long texts in a file of their own",
                    bytes, kMostTextBytes));
  return true;
}

}  // namespace sinter::convert

#include "converter/quantize/samples/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "converter/data/class_names.h"
#include "converter/data/file_list.h"
#include "converter/diagnostics/errors.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/samples/listed_samples.h"

namespace sinter::convert {
namespace {

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t n = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  return fault == std::errc() && end == text.data() + text.size() && n >= 0 ? std::optional(n) : std::nullopt;
}

using Numbers = std::map<std::string, int64_t, std::less<>>;

// Returns the numbers of the names in a file of classes.
Numbers read_classes(const std::string& file) {
  Numbers numbers;
  for (const std::string& name : read_class_names(file)) {
    const auto number = static_cast<int64_t>(numbers.size());
    if (!numbers.emplace(name, number).second)
      throw DataError(fmt::format("{}: '{}' occurs twice; give each class once",
                                  place_of_name(file, static_cast<size_t>(number)), name));
  }
  return numbers;
}

// Returns the numbers of classes that are sub-folders without a list.
Numbers numbered_folders(const FileList& list) {
  std::set<std::string> names;
  for (const ListedSample& s : list.samples) names.insert(s.label);
  const bool are_numbers = std::all_of(names.begin(), names.end(), whole_number);
  Numbers numbers;
  for (const std::string& name : names)
    numbers[name] = are_numbers ? *whole_number(name) : static_cast<int64_t>(numbers.size());
  return numbers;
}

std::vector<int64_t> labels_of(const FileList& list, const std::string& data, const LabelSource& source) {
  const auto unlabelled = std::find_if(list.samples.begin(), list.samples.end(),
                                       [](const ListedSample& s) { return s.label.empty(); });
  if (unlabelled != list.samples.end())
    throw DataError(fmt::format(
        "{}: '{}' has no label; {}", data, unlabelled->files.front().string(),
        kind_of_file(data) == FileKind::kJsonList
            ? "give --label NAME, the key of the label in every entry"
            : "put each file into a sub-folder with the name of its class, or give a list (.csv, .json)"));
  Numbers numbers;
  if (!source.classes.empty())
    numbers = read_classes(source.classes);
  else if (list.by_folder)
    numbers = numbered_folders(list);
  std::vector<int64_t> labels;
  for (const ListedSample& s : list.samples) {
    if (const auto found = numbers.find(s.label); found != numbers.end()) {
      labels.push_back(found->second);
    } else if (const auto number = whole_number(s.label)) {
      labels.push_back(*number);
    } else {
      throw DataError(fmt::format("{}: the label '{}' of '{}' {}", data, s.label, s.files.front().string(),
                                  source.classes.empty()
                                      ? "is not a number; give --classes FILE with one name a line"
                                      : fmt::format("is not among the {} classes of {}; add it there",
                                                    numbers.size(), source.classes)));
    }
  }
  return labels;
}

}  // namespace

bool labels_itself(const std::string& data) {
  return names_several_files(data) || kind_of_file(data) == FileKind::kCsvList;
}

LabelledSamples open_labelled(const std::string& data, const std::vector<SampleInput>& inputs,
                              const LabelSource& source, const SampleOptions& options) {
  if (data.starts_with("cmd:"))
    throw UsageError("--evaluate does not take a command; give a file or a folder");
  LabelledSamples result;
  if (std::optional<FileList> list = list_files(data, names_of(inputs), source.name)) {
    std::vector<int64_t> labels = labels_of(*list, data, source);
    if (list->by_folder && source.classes.empty())
      for (size_t i = 0; i < labels.size(); ++i)
        if (!whole_number(list->samples[i].label)) result.folders[labels[i]] = list->samples[i].label;
    // Labels stay with their samples where some are left out.
    for (size_t i = 0; i < labels.size(); ++i) list->samples[i].label = std::to_string(labels[i]);
    result.samples = detail::open_listed(std::move(*list), inputs, options);
    for (int64_t i = 0; i < result.samples->count(); ++i)
      result.labels.push_back(*whole_number(result.samples->label_of(i)));
    return result;
  }
  if (names_several_files(data))
    throw DataError(
        data +
        ": files of arrays have no labels; give one .npz with an array of labels, sub-folders with "
        "the names of classes, or a list (.csv, .json)");
  const ConstantPtr labels = find_array(read_arrays(data), source.name);
  if (!labels) throw DataError(fmt::format("the data has no array '{}' for --label", source.name));
  const std::vector<int64_t> all = labels->as_int64s();
  const auto total = static_cast<int64_t>(all.size());
  SampleOptions whole = options;
  whole.most = -1;
  result.samples = open_samples(data, inputs, whole);
  if (const int64_t count = result.samples->count(); count != total)
    throw DataError(fmt::format("{} labels for {} samples", total, count));
  if (options.most >= 0) result.samples = open_samples(data, inputs, options);
  const int64_t count = result.samples->count();
  for (int64_t i = 0; i < count; ++i)
    result.labels.push_back(all[static_cast<size_t>(spread_index(i, total, count))]);
  return result;
}

}  // namespace sinter::convert

#include "converter/cli/input_data.h"

#include <fmt/format.h>

#include "converter/cli/made_up_inputs.h"
#include "converter/cli/terminal.h"
#include "converter/data/file_list.h"
#include "converter/data/stated_preprocessing.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {

std::vector<SampleInput> sample_inputs(const Model& model, uint32_t entry) {
  std::vector<SampleInput> inputs;
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    const PortInfo port = model.input(i, entry);
    inputs.push_back({port.name, port.dtype, Dims(port.dims.begin(), port.dims.end()), {}});
    if (takes_numbers(port)) inputs.back().integers = integer_scale(port);
    for (size_t axis = 0; axis < port.dims.size(); ++axis)
      inputs.back().minima.push_back(model.input_range(i, static_cast<int>(axis), entry).minimum);
    if (inputs.back().minima == inputs.back().dims) inputs.back().minima.clear();
  }
  return inputs;
}

Arrays as_arrays(const Sample& sample, const std::vector<SampleInput>& inputs) {
  Arrays arrays;
  for (size_t i = 0; i < inputs.size(); ++i) arrays.emplace_back(inputs[i].name, sample[i]);
  return arrays;
}

InputData::InputData(std::string data, Preprocessing how) : data_(std::move(data)), how_(std::move(how)) {
  if (data_.starts_with("cmd:"))
    throw UsageError("--inputs does not take a command; give a file, a folder or a list");
  const FileKind kind = kind_of_file(data_);
  samples_wanted_ = names_several_files(data_) || (kind != FileKind::kArrays && kind != FileKind::kOther);
  if (samples_wanted_) return;
  if (const std::string given = how_.given(); !given.empty() && !how_.built_in)
    throw UsageError(given +
                     ": pictures and sounds are converted by this, but --inputs holds arrays; leave it out");
  arrays_ = read_arrays(data_);
}

void InputData::begin(const Model& model, const HostSession* stacks, uint32_t entry) {
  if (seed_) {
    arrays_ = random_inputs(model, *seed_, entry);
  } else if (!samples_wanted_) {
    several_ = stacks != nullptr;
    if (stacks != nullptr) count_ = stacks->sample_count(arrays_);
  } else {
    inputs_ = sample_inputs(model, entry);
    check_preprocessing(how_, {data_}, inputs_);
    const std::optional<FileList> list = list_files(data_, names_of(inputs_));
    if (how_.given().empty() && !how_.built_in && list && list->has_media()) {
      const bool skip_damaged = how_.skip_damaged;
      how_ = read_preprocessing([&](const char* key) { return model.metadata(key); });
      how_.skip_damaged = skip_damaged;
    }
    several_ = stacks != nullptr || !list || !list->single;
    source_ = open_samples(data_, inputs_, {.preprocessing = how_});
    count_ = source_->count();
    if (const std::string text = left_out_text(*source_); !text.empty())
      print_messages(fmt::format("sinter: warning: --inputs: {}\n", printable(text)));
  }
  if (count_ == 0) throw DataError("the data holds no samples");
}

const std::vector<std::string>& InputData::skipped() const {
  static const std::vector<std::string> none;
  return source_ ? source_->left_out() : none;
}

std::optional<InputData::Step> InputData::next() {
  if (at_ == count_) return std::nullopt;
  const int64_t sample = at_++;
  if (!source_) return Step{arrays_, several_ ? sample : -1};
  Sample read;
  if (!source_->next(&read)) return std::nullopt;
  arrays_ = as_arrays(read, inputs_);
  return Step{arrays_, -1};
}

InputData open_inputs(const std::string& inputs, const std::optional<uint64_t>& seed,
                      const Preprocessing& how) {
  if (inputs.empty() && !seed) throw UsageError("no inputs are given; give --inputs DATA or --random SEED");
  if (!inputs.empty() && seed) throw UsageError("--inputs and --random exclude each other; give one of them");
  if (const std::string given = how.given(); seed && !given.empty() && !how.built_in)
    throw UsageError(
        given + ": pictures and sounds are converted by this, not the numbers of --random; leave it out");
  return seed ? InputData(*seed) : InputData(inputs, how);
}

Arrays first_inputs(InputData data, const Model& model, uint32_t entry) {
  data.begin(model, nullptr, entry);
  return data.next()->arrays;
}

}  // namespace sinter::convert

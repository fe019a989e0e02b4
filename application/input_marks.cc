#include "application/input_marks.h"

namespace sinter {

uint32_t InputMarks::most_inputs(const Model& model) {
  uint32_t most = 0;
  for (uint32_t e = 0; e < model.entry_count(); ++e) most = std::max(most, model.input_count(e));
  return most;
}

void InputMarks::begin(const Model& model, const SessionOptions& options, std::span<uint8_t> memory) {
  marks_ = memory;
  most_ = most_inputs(model);
  std::fill(marks_.begin(), marks_.end(), uint8_t{0});
  const uint32_t entry = options.entry == kEveryEntry ? 0 : options.entry;
  for (const Binding& binding : options.bindings)
    if (const int input = binding.name != nullptr ? model.find_input(binding.name, entry) : -1; input >= 0)
      give_address(entry, static_cast<uint32_t>(input));
}

Status InputMarks::check(const Model& model, uint32_t entry) const {
  if (all_addresses_) return ok_status();
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    if (mark(entry, i) != 0) continue;
    TensorView view;
    const PortInfo input = model.input(i, entry);
    view.dtype = input.dtype;
    view.set_shape(input.dims);
    if (view.dense_bytes() == 0) continue;
    return invalid("it has never been set; set every input before the first run of a shape set")
        .at(Where::kInput, static_cast<int32_t>(i));
  }
  return ok_status();
}

}  // namespace sinter

#include "runtime/model/names.h"

namespace sinter::detail {
namespace {

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

const char* text_at(const fb::Model& model, uint32_t offset) {
  const auto texts = items(model.debug() != nullptr ? model.debug()->texts() : nullptr);
  if (offset >= texts.size() || texts.back() != 0) return "";
  return reinterpret_cast<const char*>(texts.data()) + offset;
}

// Returns a text of a file that lists its texts as strings.
const char* listed(const fb::Model& model, const Texts* (fb::Debug::*list)() const, int32_t index) {
  const Texts* texts = model.debug() != nullptr ? (model.debug()->*list)() : nullptr;
  return index >= 0 && static_cast<uint32_t>(index) < length(texts)
             ? text(texts->Get(static_cast<uint32_t>(index)))
             : "";
}

const fb::Step& step_of(const fb::Program& program, uint32_t step) {
  const uint32_t steps = length(program.steps());
  return step < steps ? *program.steps()->Get(step) : *program.prepare()->Get(step - steps);
}

}  // namespace

const char* value_name(const fb::Model& model, const fb::Program& program, uint32_t value) {
  if (const auto names = items(program.value_names()); value < names.size())
    return text_at(model, names[value]);
  return listed(model, &fb::Debug::names, program.values()->Get(value)->name());
}

const char* step_name(const fb::Model& model, const fb::Program& program, uint32_t step) {
  if (const auto names = items(program.step_names()); step < names.size()) return text_at(model, names[step]);
  return listed(model, &fb::Debug::names, step_of(program, step).name());
}

const char* step_origin(const fb::Model& model, const fb::Program& program, uint32_t step) {
  if (const auto origins = items(program.step_origins()); step < origins.size())
    return text_at(model, origins[step]);
  return listed(model, &fb::Debug::origins, step_of(program, step).name());
}

const char* value_order(const fb::Model& model, const fb::Program& program, uint32_t value) {
  if (program.value_orders() != nullptr)
    for (const fb::ValueOrder* v : *program.value_orders())
      if (v->value() == value) return text_at(model, v->order());
  return listed(model, &fb::Debug::orders, program.values()->Get(value)->name());
}

}  // namespace sinter::detail

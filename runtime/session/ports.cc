// The description of a session for its caller: the inputs, outputs and states with their addresses, the
// lengths that the caller gives or reads, and the copies that set and update states.
#include "runtime/session/session_creator.h"

namespace sinter::detail {

CopyItem SessionCreator::copy_item(const TensorView& from, const TensorView& to) const {
  return {from.data, to.data, static_cast<size_t>(from.dense_bytes()), devices_.queue_of(to)};
}

Status SessionCreator::walk_ports(const Frame& frame) {
  const fb::Program& program = *frame.program;
  const uint32_t inputs = length(program.inputs()), outputs = length(program.outputs());
  const uint32_t named = length(program.states());
  uint32_t states = 0, updates = 0, length_count = 0, given_count = 0;
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = frame.value(v);
    if (value.kind() == fb::ValueKind::State) ++states, updates += value.update() >= 0;
  }
  for (uint32_t i = 0; i < outputs; ++i)
    length_count += length(frame.value(program.outputs()->Get(i)->value()).bounded_dims());
  for (uint32_t i = 0; i < inputs; ++i)
    given_count += length(frame.value(program.inputs()->Get(i)->value()).bounded_dims());
  Operand* ports = nullptr;
  CopyItem* copies = nullptr;
  OutputLength* lengths = nullptr;
  GivenAxis* given = nullptr;
  TensorView* views = nullptr;
  SINTER_RETURN_IF_ERROR(memory_.take(size_t{inputs} + outputs + named, &ports));
  SINTER_RETURN_IF_ERROR(memory_.take(size_t{states} + updates, &copies));
  SINTER_RETURN_IF_ERROR(memory_.take(length_count, &lengths));
  SINTER_RETURN_IF_ERROR(memory_.take(given_count, &given));
  SINTER_RETURN_IF_ERROR(memory_.take(most_operands_ > kStackOperands ? most_operands_ : 0, &views));
  if (!building()) return ok_status();
  session_->ports = ports;
  session_->inputs = inputs, session_->outputs = outputs, session_->named_states = named;
  session_->lengths = lengths, session_->length_count = length_count;
  session_->given = given, session_->given_count = given_count;
  session_->copies = copies;
  session_->views = views;
  describe_ports(frame);
  describe_given(frame, given);
  const auto add = [&](uint8_t memory, bool update) {
    CopyItem* begin = copies;
    copies = describe_states(frame, memory, update, begin);
    return std::span<const CopyItem>(begin, copies);
  };
  session_->states = static_cast<uint32_t>(add(0, false).size());
  session_->updates = static_cast<uint32_t>(add(0, true).size());
  for (uint32_t d = 0; d < entry_.device_count; ++d) {
    session_->devices[d].initial = add(entry_.devices[d].kind, false);
    session_->devices[d].updates = add(entry_.devices[d].kind, true);
  }
  return ok_status();
}

// Fills the inputs and outputs as the caller has them, the states that have names, and where the used lengths
// of outputs are.
void SessionCreator::describe_ports(const Frame& frame) const {
  const fb::Program& program = *frame.program;
  const uint32_t inputs = session_->inputs, ends = inputs + session_->outputs;
  OutputLength* lengths = session_->lengths;
  for (uint32_t i = 0; i < session_->named_states; ++i)
    session_->ports[ends + i] = frame.operand_of(program.states()->Get(i)->value());
  for (uint32_t i = 0; i < ends; ++i) {
    const fb::Port& port = i < inputs ? *program.inputs()->Get(i) : *program.outputs()->Get(i - inputs);
    Operand& operand = session_->ports[i];
    operand = frame.operand_of(port.value());
    if (port.dims() != nullptr) {
      operand.rank = static_cast<uint8_t>(port.dims()->size());
      operand.dims = frame.offset_of(port.dims()->Data());
      operand.strides = 0;
    }
    const auto* bounded = i < inputs ? nullptr : frame.value(port.value()).bounded_dims();
    for (uint32_t e = 0; e < length(bounded); ++e) {
      const fb::BoundedDim& dim = *bounded->Get(e);
      const Operand used = frame.operand_of(static_cast<uint32_t>(dim.length()));
      *lengths++ = {used.memory == 0 ? used.data : nullptr, i - inputs, dim.axis()};
    }
  }
}

// Fills the bounded axes of the inputs, at their maxima.
void SessionCreator::describe_given(const Frame& frame, GivenAxis* axes) const {
  const fb::Program& program = *frame.program;
  uint32_t count = 0;
  for (uint32_t i = 0; i < length(program.inputs()); ++i) {
    const auto* bounded = frame.value(program.inputs()->Get(i)->value()).bounded_dims();
    for (uint32_t e = 0; e < length(bounded); ++e) {
      const fb::BoundedDim& dim = *bounded->Get(e);
      const fb::Length& given = *program.lengths()->Get(find_length(program, dim.length()));
      std::byte* at = frame.operand_of(static_cast<uint32_t>(dim.length())).data;
      uint32_t first = 0;
      while (first < count && axes[first].at != at) ++first;
      axes[count++] = {{dim.axis(), given.minimum(), given.maximum()}, given.maximum(), at, i, first};
    }
  }
}

// Fills the initial values or the updates of the states in a memory, and returns the end of the list.
CopyItem* SessionCreator::describe_states(const Frame& frame, uint8_t memory, bool updates,
                                          CopyItem* items) const {
  const ModelState& model = *entry_.model.state();
  for (uint32_t v = 0; v < length(frame.program->values()); ++v) {
    const fb::Value& value = frame.value(v);
    if (value.kind() != fb::ValueKind::State || (updates && value.update() < 0)) continue;
    const TensorView state = frame.view_of(v);
    if (state.memory != memory) continue;
    CopyItem& item = *items++;
    if (updates) {
      item = copy_item(frame.view_of(value.update()), state);
      continue;
    }
    item = copy_item(state, state);
    item.from =
        value.initial() < 0
            ? nullptr
            : constant_data(model, *model.root->constants()->Get(static_cast<uint32_t>(value.initial())));
  }
  return items;
}

}  // namespace sinter::detail

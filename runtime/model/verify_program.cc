// One program on its own: values, order of steps, operands against inference, control flow against its
// bodies.
#include <algorithm>
#include <limits>

#include "runtime/backend/validate.h"
#include "runtime/model/verify.h"

namespace sinter::detail {
namespace {

const Status kNotForSteps =
    corrupt("a prepared value, or a constant that is left out, is read by more than steps");

Status at_value(Status status, uint32_t v) { return status.at(Where::kValue, static_cast<int32_t>(v)); }

// No product of dims exceeds 63 bits, even with zeros among them, so that strides can be computed plainly.
bool dims_fit(DType dtype, std::span<const int64_t> dims) {
  int64_t product = byte_width(dtype) > 0 ? static_cast<int64_t>(byte_width(dtype)) : 1;
  for (const int64_t d : dims)
    if (d < 0 || !checked_mul<int64_t>(product, d > 0 ? d : 1, &product)) return false;
  return product <= PTRDIFF_MAX / 8;
}

// Whether only steps read the value (not yet verified): it is prepared, or a constant that is left out.
bool is_for_steps(const ModelState& model, const fb::Value& value) {
  if (value.kind() != fb::ValueKind::Constant) return value.kind() == fb::ValueKind::Prepared;
  const auto& constants = *model.root->constants();
  const auto index = static_cast<uint32_t>(value.constant());
  return index < constants.size() && is_left_out(*constants.Get(index));
}

// Whether two tables, each a value's or a constant's, have the same type and shape.
template <class A, class B>
bool same_type(const A& a, const B& b) {
  const auto x = items(a.dims()), y = items(b.dims());
  return a.dtype() == b.dtype() && std::equal(x.begin(), x.end(), y.begin(), y.end());
}

Status check_value(const ModelState& model, const fb::Program& program, bool entry, const fb::Value& value) {
  const auto dtype = static_cast<DType>(value.dtype());
  const auto dims = items(value.dims());
  SINTER_RETURN_UNLESS(bit_width(dtype) > 0 && dims.size() <= kMaxRank && dims_fit(dtype, dims),
                       corrupt("the value has an impossible type or shape"));
  SINTER_RETURN_UNLESS(value.kind() <= fb::ValueKind::Prepared, corrupt("unknown kind of value"));
  SINTER_RETURN_UNLESS(!is_sub_byte(dtype) || value.kind() == fb::ValueKind::Constant,
                       corrupt("only constants can have a packed type"));
  // The comparison is false for NaN, too.
  SINTER_RETURN_UNLESS(value.scale() >= 0 && value.scale() <= std::numeric_limits<float>::max() &&
                           (value.scale() == 0 || is_integer(dtype)),
                       corrupt("the value has an impossible scale"));
  const auto matches = [&](int32_t index) {
    return index >= 0 && static_cast<uint32_t>(index) < model.root->constants()->size() &&
           same_type(*model.root->constants()->Get(static_cast<uint32_t>(index)), value);
  };
  if (value.kind() == fb::ValueKind::Constant)
    SINTER_RETURN_UNLESS(matches(value.constant()),
                         corrupt("the value does not have its constant's type and shape"));
  if (value.kind() == fb::ValueKind::State) {
    SINTER_RETURN_UNLESS(entry, unsupported("a subprogram holds state"));
    SINTER_RETURN_UNLESS(value.initial() == -1 || matches(value.initial()),
                         corrupt("a state does not have its initial value's type and shape"));
    SINTER_RETURN_UNLESS(value.initial() == -1 || !is_left_out(*model.root->constants()->Get(
                                                      static_cast<uint32_t>(value.initial()))),
                         corrupt("a state's initial value is left out"));
  }
  if (value.bounded_dims() != nullptr)
    for (const fb::BoundedDim* e : *value.bounded_dims()) {
      SINTER_RETURN_UNLESS(e->axis() >= 0 && static_cast<size_t>(e->axis()) < dims.size() &&
                               e->length() >= 0 &&
                               static_cast<uint32_t>(e->length()) < length(program.values()),
                           corrupt("a bounded dimension names an axis or a value that does not exist"));
      const fb::Value& count = *program.values()->Get(static_cast<uint32_t>(e->length()));
      SINTER_RETURN_UNLESS(static_cast<DType>(count.dtype()) == DType::kInt64 && length(count.dims()) == 0,
                           corrupt("the length of a bounded dimension is not an int64 scalar"));
      SINTER_RETURN_UNLESS(
          !is_for_steps(model, count),
          corrupt("the length of a bounded dimension is a prepared value, or a constant that is left out"));
    }
  return ok_status();
}

bool is_scalar(const fb::Value& v, DType dtype) {
  return static_cast<DType>(v.dtype()) == dtype && value_view(v).size() == 1;
}
const fb::Value& value_at(const fb::Program& p, int32_t v) {
  return *p.values()->Get(static_cast<uint32_t>(v));
}

// Public inputs and outputs, or a subprogram's.
Status check_ports(const ModelState& model, const fb::Program& program, bool entry,
                   const flatbuffers::Vector<flatbuffers::Offset<fb::Port>>* ports, Where where) {
  for (uint32_t i = 0; i < length(ports); ++i) {
    const fb::Port& port = *ports->Get(i);
    const auto index = static_cast<int32_t>(i);
    SINTER_RETURN_UNLESS(port.value() < length(program.values()),
                         corrupt("a port does not name a value").at(where, index));
    SINTER_RETURN_UNLESS(!is_for_steps(model, *program.values()->Get(port.value())),
                         kNotForSteps.at(where, index));
    SINTER_RETURN_UNLESS(!entry || (port.name() != nullptr && port.name()->size() > 0),
                         corrupt("an input or output has no name").at(where, index));
    const TensorView view = value_view(*program.values()->Get(port.value()));
    SINTER_RETURN_UNLESS(!is_sub_byte(view.dtype),
                         unsupported("an input or output has a packed type").at(where, index));
    if (port.dims() != nullptr) {
      const auto dims = items(port.dims());
      int64_t bytes = 0;
      SINTER_RETURN_UNLESS(dims.size() <= kMaxRank && dims_fit(view.dtype, dims) &&
                               checked_bytes(view.dtype, dims, &bytes) && bytes == view.dense_bytes(),
                           corrupt("the public dims do not fit the value").at(where, index));
    }
  }
  return ok_status();
}

// The names of states, in their order.
Status check_states(const fb::Program& program, bool entry) {
  SINTER_RETURN_UNLESS(entry || length(program.states()) == 0, corrupt("a subprogram names states"));
  for (uint32_t i = 0; i < length(program.states()); ++i) {
    const fb::StatePort& port = *program.states()->Get(i);
    SINTER_RETURN_UNLESS(
        port.value() < length(program.values()) &&
            program.values()->Get(port.value())->kind() == fb::ValueKind::State &&
            (i == 0 || program.states()->Get(i - 1)->value() < port.value()),
        at_value(corrupt("a state's name is out of order, or of a value that is not a state"), port.value()));
    SINTER_RETURN_UNLESS(port.input() != nullptr && port.input()->size() > 0 && port.output() != nullptr &&
                             port.output()->size() > 0,
                         at_value(corrupt("a state has no name"), port.value()));
  }
  return ok_status();
}

bool is_as_inferred(const fb::Value& value, const TensorView& inferred) {
  const auto dims = items(value.dims());
  return static_cast<DType>(value.dtype()) == inferred.dtype && dims.size() == inferred.rank &&
         std::equal(dims.begin(), dims.end(), inferred.dims);
}

// The outputs are inferred again.
Status check_operands(const ModelState& model, const ProgramFacts& f, const fb::Step& step) {
  const fb::Program& program = *f.program;
  AttrStorage attrs;
  TensorView* views = f.views;
  const uint32_t inputs = length(step.inputs()), outputs = length(step.outputs());
  SINTER_RETURN_UNLESS(inputs + uint64_t{outputs} <= kMaxOperands,
                       unsupported("a step has more than %a operands", kMaxOperands));
  SINTER_RETURN_IF_ERROR(decode_attrs(step, &attrs));
  const bool custom = is_custom(step);
  if (custom) {
    SINTER_RETURN_IF_ERROR(check_definition(reinterpret_cast<const CustomAttrs*>(&attrs)->definition));
    SINTER_RETURN_IF_ERROR(decode_attrs(model, step, &attrs));
    // Without its operator the step has no rule; sessions are refused.
    if (reinterpret_cast<const CustomAttrs*>(&attrs)->op == nullptr) return ok_status();
  }
  for (uint32_t i = 0; i < inputs; ++i) {
    views[i] = {};
    const int32_t v = items(step.inputs())[i];
    if (v < 0) continue;
    const fb::Value& value = value_at(program, v);
    views[i] = value_view(value);
    views[i].constant = value.kind() == fb::ValueKind::Constant;
    // A custom operator's rule may read what is constant.
    SINTER_RETURN_UNLESS(!custom || !views[i].constant || !is_for_steps(model, value),
                         corrupt("a custom operator reads a constant that is left out"));
    if (custom && views[i].constant)
      views[i].data = const_cast<std::byte*>(
          constant_data(model, *model.root->constants()->Get(static_cast<uint32_t>(value.constant()))));
  }
  const auto outs = items(step.outputs());
  for (uint32_t i = 0; i < outputs; ++i) {
    views[inputs + i] = {};
    if (outs[i] < 0) views[inputs + i].rank = kUnwantedRank;
  }
  OpCall call{step_op(step), &attrs, {views, inputs}, {views + inputs, outputs}};
  Status status = infer(call, model.kernels);
  // Faults of infer's caller are, here, faults of the file.
  if (status.code == Code::kInvalidArgument) status.code = Code::kCorrupt;
  SINTER_RETURN_IF_ERROR(status);
  for (uint32_t i = 0; i < outputs; ++i)
    SINTER_RETURN_UNLESS(outs[i] < 0 || is_as_inferred(value_at(program, outs[i]), call.out(i)),
                         corrupt("output %a does not have the type or shape that the operation gives", i));
  return ok_status();
}

// Operands of If and Loop against their subprograms' ports.
Status check_control(const ModelState& model, const fb::Program& program, const fb::Step& step) {
  AttrStorage attrs;
  SINTER_RETURN_IF_ERROR(decode_attrs(step, &attrs));
  const auto ins = items(step.inputs()), outs = items(step.outputs());
  const bool loop = step_op(step) == Op::kLoop;
  if (loop) {
    const auto& a = *reinterpret_cast<const LoopAttrs*>(&attrs);
    SINTER_RETURN_UNLESS(
        a.max_trips >= 0 && a.carried >= 0 && static_cast<uint64_t>(a.carried) < uint64_t{1} << 30,
        corrupt("a loop's attributes are impossible"));
  }
  const ControlShape shape = control_shape(step);
  SINTER_RETURN_UNLESS(ins.size() >= shape.captured, corrupt("a control step lacks operands"));
  for (size_t i = 0; i < ins.size(); ++i)
    SINTER_RETURN_UNLESS(ins[i] >= 0 || (loop && i < 2), corrupt("an operand of a control step is missing"));
  if (loop) {
    SINTER_RETURN_UNLESS(ins[0] < 0 || is_scalar(value_at(program, ins[0]), DType::kInt64),
                         corrupt("the trip count is not an int64 scalar"));
    SINTER_RETURN_UNLESS(ins[1] < 0 || is_scalar(value_at(program, ins[1]), DType::kBool),
                         corrupt("the loop's condition is not a bool scalar"));
    SINTER_RETURN_UNLESS(outs.size() > shape.carried, corrupt("a loop lacks outputs"));
    SINTER_RETURN_UNLESS(outs.back() < 0 || is_scalar(value_at(program, outs.back()), DType::kInt64),
                         corrupt("the number of trips is not an int64 scalar"));
  } else {
    SINTER_RETURN_UNLESS(is_scalar(value_at(program, ins[0]), DType::kBool),
                         corrupt("the condition is not a bool scalar"));
  }

  for (const uint32_t sub : items(step.subprograms())) {
    const fb::Program& body = *model.root->programs()->Get(sub);
    const auto port_value = [&](const auto* ports, uint32_t i) -> const fb::Value& {
      return *body.values()->Get(ports->Get(i)->value());
    };
    const auto in_value = [&](uint32_t i) -> const fb::Value& { return port_value(body.inputs(), i); };
    const auto out_value = [&](uint32_t i) -> const fb::Value& { return port_value(body.outputs(), i); };
    const size_t captured = ins.size() - shape.captured;
    SINTER_RETURN_UNLESS(length(body.inputs()) == shape.own + captured,
                         corrupt("a subprogram's inputs do not match its step's operands"));
    for (uint32_t i = 0; i < captured; ++i)
      SINTER_RETURN_UNLESS(same_type(in_value(shape.own + i), value_at(program, ins[shape.captured + i])),
                           corrupt("captured value %a has another type or shape in the subprogram", i));
    SINTER_RETURN_UNLESS(length(body.outputs()) == outs.size(),
                         corrupt("the results of a subprogram do not match its step's results"));
    if (!loop) {
      for (uint32_t i = 0; i < outs.size(); ++i)
        SINTER_RETURN_UNLESS(outs[i] < 0 || same_type(out_value(i), value_at(program, outs[i])),
                             corrupt("result %a has another type or shape in the branch", i));
      continue;
    }
    // Body results: condition, carried, scanned; step outputs: carried, scanned, trips.
    SINTER_RETURN_UNLESS(is_scalar(in_value(0), DType::kInt64) && is_scalar(in_value(1), DType::kBool) &&
                             is_scalar(out_value(0), DType::kBool),
                         corrupt("a loop's body has a wrong iteration number or condition"));
    const int64_t max_trips = items(step.ints())[0];
    for (uint32_t i = 0; i + 1 < outs.size(); ++i) {
      const fb::Value& result = out_value(1 + i);
      if (i < shape.carried) {
        SINTER_RETURN_UNLESS(same_type(result, in_value(2 + i)) &&
                                 same_type(result, value_at(program, ins[2 + i])) &&
                                 (outs[i] < 0 || same_type(result, value_at(program, outs[i]))),
                             corrupt("carried value %a changes its type or shape", i));
        continue;
      }
      if (outs[i] < 0) continue;
      const fb::Value& scanned = value_at(program, outs[i]);
      const auto all = items(scanned.dims()), each = items(result.dims());
      const bool good = scanned.dtype() == result.dtype() && all.size() == each.size() + 1 &&
                        all[0] == max_trips && std::equal(each.begin(), each.end(), all.begin() + 1);
      SINTER_RETURN_UNLESS(good, corrupt("scanned output %a does not match the body's result", i));
    }
  }
  return ok_status();
}

// Operands exist, are given before they are read, and are given once. `kind`: what this list's outputs are.
Status check_order(const ModelState& model, const ProgramFacts& f, const fb::Step& step, int32_t s,
                   fb::ValueKind kind) {
  const auto known = [&](int32_t v) { return static_cast<size_t>(v) < f.lives.size(); };
  for (const int32_t v : items(step.inputs())) {
    if (v == -1) continue;
    SINTER_RETURN_UNLESS(known(v), corrupt("an operand does not exist"));
    Life& life = f.lives[v];
    SINTER_RETURN_UNLESS(life.first != Life::kNever, corrupt("value %a is read before it is computed", v));
    const fb::ValueKind from = value_at(*f.program, v).kind();
    SINTER_RETURN_UNLESS(kind != fb::ValueKind::Prepared || from == fb::ValueKind::Constant || from == kind,
                         corrupt("a prepare step reads a value that runs compute"));
    SINTER_RETURN_UNLESS(!is_control(step) || !is_for_steps(model, value_at(*f.program, v)), kNotForSteps);
    if (kind == fb::ValueKind::Temporary && from != fb::ValueKind::Prepared && s > life.last) life.last = s;
  }
  for (const int32_t v : items(step.outputs())) {
    if (v == -1) continue;
    SINTER_RETURN_UNLESS(known(v), corrupt("an operand does not exist"));
    Life& life = f.lives[v];
    SINTER_RETURN_UNLESS(life.first == Life::kNever && value_at(*f.program, v).kind() == kind,
                         corrupt("value %a is computed twice or by the wrong list of steps", v));
    life.first = life.last = kind == fb::ValueKind::Temporary ? s : -1;
  }
  return ok_status();
}

Status check_step(const ModelState& model, const ProgramFacts& f, const fb::Step& step, int32_t s,
                  fb::ValueKind kind) {
  const OpInfo* info = op_info(step_op(step));
  SINTER_RETURN_UNLESS(info != nullptr,
                       unsupported("operation number %a is unknown to this build", step.op()));
  SINTER_RETURN_UNLESS(
      step.op_version() >= 1 && step.op_version() <= info->version,
      unsupported("version %a of the operation is newer than this build", step.op_version()));
  SINTER_RETURN_IF_ERROR(check_order(model, f, step, s, kind));
  if (!is_control(step)) return check_operands(model, f, step);
  SINTER_RETURN_UNLESS(kind == fb::ValueKind::Temporary, corrupt("a prepare list holds control flow"));
  return check_control(model, *f.program, step);
}

// Prepared values are numbered as their steps are, one each, and depend on few steps before theirs. Their
// Life::last is the first of these.
Status check_prepare_chain(const ProgramFacts& f, const fb::Step& step, int32_t s) {
  const int32_t first = items(f.program->prepare()->Get(0)->outputs())[0];
  const auto outs = items(step.outputs());
  SINTER_RETURN_UNLESS(outs.size() == 1 && first >= 0 && outs[0] == first + s,
                       corrupt("prepared values are not numbered as their steps"));
  int32_t start = s;
  for (const int32_t v : items(step.inputs()))
    if (v >= 0 && value_at(*f.program, v).kind() == fb::ValueKind::Prepared && f.lives[v].last < start)
      start = f.lives[v].last;
  SINTER_RETURN_UNLESS(
      s - start < kMaxPrepareChain,
      unsupported("a prepared value depends on more than %a steps before it", kMaxPrepareChain));
  f.lives[outs[0]].last = start;
  return ok_status();
}

}  // namespace

Status verify_values(const ModelState& model, ProgramFacts& f) {
  const fb::Program& program = *f.program;
  const bool entry = f.owner == nullptr;
  const auto end = static_cast<int32_t>(length(program.steps()));
  SINTER_RETURN_UNLESS(length(program.steps()) < INT32_MAX && length(program.values()) < INT32_MAX,
                       corrupt("a program is too long"));
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    const Status status = check_value(model, program, entry, value);
    if (!status.ok()) return at_value(status, v);
    if (value.kind() == fb::ValueKind::Constant) f.lives[v] = {-1, -1};
    // A state that a run replaces may be overwritten after its last reader.
    if (value.kind() == fb::ValueKind::State) f.lives[v] = {-1, value.update() >= 0 ? -1 : end};
  }
  SINTER_RETURN_IF_ERROR(check_states(program, entry));
  SINTER_RETURN_IF_ERROR(check_ports(model, program, entry, program.inputs(), Where::kInput));
  SINTER_RETURN_IF_ERROR(verify_lengths(program, entry));
  return check_ports(model, program, entry, program.outputs(), Where::kOutput);
}

Status verify_program(const ModelState& model, ProgramFacts& f) {
  const fb::Program& program = *f.program;
  const auto end = static_cast<int32_t>(length(program.steps()));
  f.own_inputs = length(program.inputs());
  if (f.owner != nullptr) {
    // The owner's step is checked with the owner: its attributes may still be bad.
    if (step_op(*f.owner_step) == Op::kLoop)
      SINTER_RETURN_UNLESS(length(f.owner_step->ints()) == 2 && items(f.owner_step->ints())[1] >= 0 &&
                               items(f.owner_step->ints())[1] < (int64_t{1} << 30),
                           corrupt("a loop's attributes are impossible"));
    f.own_inputs = control_shape(*f.owner_step).own;
    SINTER_RETURN_UNLESS(f.own_inputs <= length(program.inputs()), corrupt("a subprogram lacks inputs"));
  }
  const auto give = [&](uint32_t v, bool captured, const char* fault) {
    SINTER_RETURN_UNLESS(
        program.values()->Get(v)->kind() == fb::ValueKind::Input && f.lives[v].first == Life::kNever,
        at_value(corrupt(fault), v));
    f.lives[v] = {-1, -1};
    f.ports[v] = captured ? 1 : 0;
    return ok_status();
  };
  for (uint32_t i = 0; i < length(program.inputs()); ++i)
    SINTER_RETURN_IF_ERROR(give(program.inputs()->Get(i)->value(), i >= f.own_inputs,
                                "an input is listed twice or is not an input"));
  for (uint32_t i = 0; i < length(program.lengths()); ++i)
    SINTER_RETURN_IF_ERROR(give(program.lengths()->Get(i)->value(), false,
                                "a length that the caller gives is listed twice or is not an input"));
  SINTER_RETURN_UNLESS(
      length(program.prepare()) < INT32_MAX &&
          (length(program.prepare()) == 0 || length(program.prepare()->Get(0)->outputs()) == 1),
      corrupt("prepared values are not numbered as their steps"));
  for (int32_t s = 0; s < static_cast<int32_t>(length(program.prepare())); ++s) {
    const fb::Step& step = *program.prepare()->Get(static_cast<uint32_t>(s));
    Status status = check_step(model, f, step, s, fb::ValueKind::Prepared);
    if (status.ok()) status = check_prepare_chain(f, step, s);
    if (!status.ok()) return status.at_step(static_cast<uint32_t>(s), f.index, Where::kPrepareStep);
  }
  for (int32_t s = 0; s < end; ++s) {
    const Status status =
        check_step(model, f, *program.steps()->Get(static_cast<uint32_t>(s)), s, fb::ValueKind::Temporary);
    if (!status.ok()) return status.at_step(static_cast<uint32_t>(s), f.index);
  }
  for (uint32_t v = 0; v < length(program.values()); ++v)
    SINTER_RETURN_UNLESS(f.lives[v].first != Life::kNever,
                         at_value(corrupt("no step computes the value"), v));
  if (program.outputs() != nullptr)
    for (const fb::Port* port : *program.outputs()) f.lives[port->value()].last = end;
  for (uint32_t v = 0; v < length(program.values()); ++v) {
    const fb::Value& value = *program.values()->Get(v);
    if (value.kind() != fb::ValueKind::State || value.update() == -1) continue;
    SINTER_RETURN_UNLESS(static_cast<uint32_t>(value.update()) < length(program.values()) &&
                             same_type(value, value_at(program, value.update())) &&
                             value_at(program, value.update()).kind() != fb::ValueKind::State &&
                             !is_for_steps(model, value_at(program, value.update())),
                         at_value(corrupt("a state's update does not fit it"), v));
    f.lives[static_cast<uint32_t>(value.update())].last = end;
  }
  return ok_status();
}

}  // namespace sinter::detail

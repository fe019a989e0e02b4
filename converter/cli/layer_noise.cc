#include "converter/cli/layer_noise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "converter/diagnostics/errors.h"
#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"
#include "runtime/model/names.h"

namespace sinter::convert {
namespace {

// Whether the operation's results are elements of its operands.
bool passes_elements(Op op) { return moves(op) || op == Op::kMaxPool; }

ConstantPtr transposed(const ConstantPtr& c, const std::vector<int64_t>& perm) {
  if (perm.empty()) return c;
  std::vector<ConstantPtr> moved;
  if (perm.size() != c->dims().size() ||
      !evaluate(TransposeAttrs{IntList(std::span<const int64_t>(perm))}, {c}, 1, &moved).ok())
    return nullptr;
  return moved[0];
}

// Returns the numbers that a tensor represents, as float64 of its shape.
ConstantPtr numbers_of(const TensorView& v, const std::optional<QuantParams>& params) {
  std::vector<double> items;
  read_numbers(v, params, &items);
  return Constant::of<double>(DType::kFloat64, Dims(v.dims, v.dims + v.rank), items);
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> out(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i)
    if (static_cast<uint64_t>(order[i]) < order.size())
      out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return out;
}

std::optional<QuantParams> params_of(const fb::Value& v) {
  const auto type = static_cast<DType>(v.dtype());
  if (v.scale() <= 0 || quant_range(type).max == 0) return std::nullopt;
  return QuantParams{type, static_cast<double>(v.scale()), v.zero_point()};
}

StepValue described(const Model& model, const fb::Program& program, uint32_t v) {
  const fb::Model& root = *model.state()->root;
  StepValue value;
  value.name = detail::value_name(root, program, v);
  value.base = exact_name(value.name, &value.rescaled);
  value.params = params_of(*program.values()->Get(v));
  value.dtype = static_cast<DType>(program.values()->Get(v)->dtype());
  value.bounded = detail::length(program.values()->Get(v)->bounded_dims()) > 0;
  std::istringstream axes(detail::value_order(root, program, v));
  for (int64_t axis; axes >> axis;) value.order.push_back(axis);
  return value;
}

}  // namespace

const fb::Program& program_of(const Model& model, uint32_t entry) {
  return *model.state()->root->programs()->Get(model.entry_program(entry, model.default_profile()));
}

std::vector<std::vector<StepValue>> step_values(const Model& model, uint32_t entry) {
  const fb::Program& program = program_of(model, entry);
  std::vector<std::vector<StepValue>> result;
  for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
    result.emplace_back();
    for (const int32_t id : detail::items(program.steps()->Get(s)->outputs()))
      result.back().push_back(id < 0 ? StepValue() : described(model, program, static_cast<uint32_t>(id)));
  }
  return result;
}

bool has_quantized_values(const Model& model, uint32_t entry) {
  const fb::Program& program = program_of(model, entry);
  for (uint32_t i = 0; i < detail::length(program.values()); ++i)
    if (program.values()->Get(i)->scale() > 0) return true;
  return false;
}

ExactLayers::ExactLayers(const Model& model, uint32_t entry)
    : values_(step_values(model, entry)), elided_(model, entry) {
  const fb::Model& root = *model.state()->root;
  const fb::Program& program = program_of(model, entry);
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    inputs_.push_back(described(model, program, program.inputs()->Get(i)->value()));
    inputs_.back().name = inputs_.back().base = model.input(i, entry).name;
  }
  // The trips of an unrolled loop have equal names, which stand for none of them.
  std::map<std::string, int> count;
  for (const auto& step : values_)
    for (const StepValue& value : step) ++count[value.name];
  for (auto& step : values_)
    for (StepValue& value : step)
      if (count[value.name] > 1) value.name.clear();
  for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
    const auto ids = detail::items(program.steps()->Get(s)->inputs());
    const bool has = !ids.empty() && ids[0] >= 0;
    first_operands_.push_back(has ? detail::value_name(root, program, static_cast<uint32_t>(ids[0])) : "");
  }
}

void ExactLayers::run(HostSession& session, const ExactLayers* integers) {
  exact_.clear(), derived_.clear(), unrounded_.clear();
  Session& s = session.session();
  for (uint32_t i = 0; i < s.input_count(); ++i) keep(inputs_[i], s.input(i));
  states_.clear();
  for (uint32_t i = 0; i < s.model().state_count(); ++i) {
    const TensorView v = s.state(i);
    if (!v.present() || !has_numbers(v.dtype)) continue;
    read_numbers(v, std::nullopt, &states_[s.model().state(i).input]);
  }
  const auto keep_elided = [&](uint32_t step, Op, const TensorView& v) { keep(values_[step][0], v); };
  elided_.before(s, keep_elided);
  session.run([&](const StepInfo& info, const OpCall& call) {
    const std::vector<StepValue>& values = values_[info.step];
    for (size_t i = 0; i < call.outputs.size() && i < values.size(); ++i) keep(values[i], call.outputs[i]);
    keep_unrounded(info.step, call);
    if (integers != nullptr && !values.empty() && !call.outputs.empty() && values[0].params)
      replace(values[0], call.outputs[0], *integers);
    elided_.after(info, call, keep_elided);
  });
}

void ExactLayers::keep(const StepValue& value, const TensorView& v) {
  if (!v.present() || v.memory != 0 || value.name.empty() || !has_numbers(v.dtype)) return;
  const ConstantPtr array = transposed(numbers_of(v, value.params), inverse(value.order));
  if (!array) return;
  if (value.params)
    quantized_.insert(value.name);
  else if (!is_float(v.dtype))
    integers_.insert(value.name);
  exact_[value.name] = array;
  if (value.base != value.name && (value.params || is_float(v.dtype))) derived_[value.base] = array;
}

void ExactLayers::replace(const StepValue& value, const TensorView& v, const ExactLayers& by) {
  const ConstantPtr exact = v.present() && v.memory == 0 ? by.find_as_held(value) : nullptr;
  if (exact && exact->dims() == Dims(v.dims, v.dims + v.rank))
    write_numbers(v, value.params, exact->as_doubles());
}

// Follows a value from its Quantize through the operations that may come behind it: Clamp and Dequantize.
void ExactLayers::keep_unrounded(uint32_t step, const OpCall& call) {
  if (values_[step].size() != 1 || values_[step][0].name.empty()) return;
  const StepValue& value = values_[step][0];
  const auto limited = [&](const Unrounded& from, double low, double high) {
    std::vector<double> items = from.exact->as_doubles();
    for (double& x : items) x = std::isnan(x) ? x : std::min(std::max(x, low), high);
    return Unrounded{Constant::of<double>(DType::kFloat64, from.exact->dims(), items), from.step};
  };
  const auto number = [&](double q) {
    return (q - static_cast<double>(value.params->zero_point)) * value.params->scale;
  };
  const auto before = unrounded_.find(first_operands_[step]);
  if (call.op == Op::kQuantize && value.params) {
    const TensorView x = call.inputs[0];
    if (!is_float(x.dtype) || x.memory != 0 || x.data == call.outputs[0].data) return;
    const QuantRange range = quant_range(value.params->type);
    unrounded_[value.name] =
        limited({numbers_of(x, std::nullopt), value.params->scale}, number(static_cast<double>(range.min)),
                number(static_cast<double>(range.max)));
  } else if (call.op == Op::kClamp && before != unrounded_.end() && value.params) {
    const auto& bounds = call.attrs<ClampAttrs>();
    unrounded_[value.name] = limited(before->second, number(bounds.min), number(bounds.max));
  } else if (call.op == Op::kDequantize && before != unrounded_.end()) {
    unrounded_[value.name] = before->second;
  }
}

std::optional<Unrounded> ExactLayers::find_unrounded(const StepValue& value) const {
  auto at = unrounded_.find(value.name);
  if (at == unrounded_.end() && value.params) at = unrounded_.find(value.base);
  if (at == unrounded_.end()) return std::nullopt;
  const ConstantPtr held = transposed(at->second.exact, value.order);
  return held ? std::optional(Unrounded{held, at->second.step}) : std::nullopt;
}

ConstantPtr ExactLayers::find(const StepValue& value) const {
  const auto in = [](const auto& map, const std::string& name) {
    const auto at = map.find(name);
    return at == map.end() ? nullptr : at->second;
  };
  // The numbers that its integers represent are not known.
  if (!value.params && !is_float(value.dtype) && quantized_.contains(value.name)) return nullptr;
  if (ConstantPtr same = in(exact_, value.name); same && !(value.params && integers_.contains(value.name)))
    return same;
  const ConstantPtr base = value.params && integers_.contains(value.base) ? nullptr : in(exact_, value.base);
  return base ? base : in(derived_, value.base);
}

ConstantPtr ExactLayers::find_as_held(const StepValue& value) const {
  const ConstantPtr exact = find(value);
  return exact ? transposed(exact, value.order) : nullptr;
}

LayerNoise::LayerNoise(const Model& model, uint32_t entry)
    : model_(model),
      program_(model.entry_program(entry, model.default_profile())),
      values_(step_values(model, entry)),
      elided_(model, entry) {}

Arrays LayerNoise::run(HostSession& session, const ExactLayers& exact, const Judge& judge, const Judge& own) {
  exact_ = &exact, judge_ = &judge, own_ = &own;
  const auto look_at_elided = [&](uint32_t step, Op op, const TensorView& v) { look(step, 0, op, v); };
  // The run also overwrites the session's inputs.
  std::vector<Bytes> inputs;
  Session& s = session.session();
  for (uint32_t i = 0; i < s.input_count(); ++i) {
    const TensorView v = s.input(i);
    inputs.emplace_back(v.data, v.data + v.dense_bytes());
  }
  std::vector<Bytes> states, next;
  const auto keep_states = [&](std::vector<Bytes>* kept) {
    for (uint32_t i = 0; i < model_.state_count(); ++i)
      if (const TensorView v = s.state(i); v.present()) kept->emplace_back(v.data, v.data + v.dense_bytes());
  };
  const auto give_states = [&](const std::vector<Bytes>& kept) {
    size_t n = 0;
    for (uint32_t i = 0; i < model_.state_count(); ++i)
      if (const TensorView v = s.state(i); v.present())
        std::memcpy(v.data, kept[n].data(), kept[n].size()), ++n;
  };
  keep_states(&states);
  Arrays outputs;
  for (const bool forcing : {false, true}) {
    forcing_ = forcing;
    if (forcing) keep_states(&next), give_states(states), give_exact_states(s);
    for (uint32_t i = 0; i < s.input_count(); ++i)
      if (!inputs[i].empty()) std::memcpy(s.input(i).data, inputs[i].data(), inputs[i].size());
    elided_.before(s, look_at_elided);
    session.run([&](const StepInfo& info, const OpCall& call) {
      const size_t count = std::min(call.outputs.size(), values_[info.step].size());
      for (size_t i = 0; i < count; ++i) look(info.step, i, call.op, call.outputs[i]);
      elided_.after(info, call, look_at_elided);
    });
    if (!forcing) outputs = session.outputs();
  }
  give_states(next);
  return outputs;
}

// Gives the session the states with which the reference began its run.
void LayerNoise::give_exact_states(const Session& session) const {
  for (uint32_t i = 0; i < model_.state_count(); ++i) {
    const TensorView v = session.state(i);
    const std::vector<double>* exact = exact_->find_state(model_.state(i).input);
    if (v.present() && exact != nullptr && static_cast<int64_t>(exact->size()) == v.size() &&
        is_float(v.dtype))
      write_numbers(v, std::nullopt, *exact);
  }
}

void LayerNoise::look(uint32_t step, size_t output, Op op, const TensorView& v) {
  const StepValue& value = values_[step][output];
  if (!v.present() || v.memory != 0 || value.name.empty() || !has_numbers(v.dtype)) return;
  const ConstantPtr exact = exact_->find_as_held(value);
  if (!exact || exact->dims() != Dims(v.dims, v.dims + v.rank)) return;
  // The value is integers without known parameters, and the ONNX value of that name may have others.
  if (value.base != value.name && !value.params && !is_float(v.dtype)) return;
  x_ = exact->as_doubles();
  read_numbers(v, value.params, &y_);
  const auto [name, fresh] = first_.emplace(value.base, step);
  const bool repeats = name->second != step && op == Op::kDequantize;
  if (!repeats) {
    Row& row = rows_[{step, output}];
    const int64_t channels = v.rank > 0 ? v.dims[v.rank - 1] : 0;
    if (row.name.empty()) {
      row.step = step, row.output = output, row.name = value.base,
      row.node = model_.step_name(step, program_), row.op = model_.step_op(step, program_);
      row.dtype = v.dtype, row.judged = rows_.size() - 1;
      row.accumulated = NoiseMeter(channels, value.params, value.rescaled);
      if (!passes_elements(op)) row.own = NoiseMeter(channels, value.params, value.rescaled);
    }
    if (!forcing_) {
      row.accumulated.add(x_, y_);
      if (*judge_) (*judge_)(row, {x_, y_, v.dtype});
    } else {
      if (*own_) (*own_)(row, {x_, y_, v.dtype});
      if (row.own) row.own->add(x_, y_);
      // Values held with other factors cannot be replaced; their readers get them unchanged.
      if (row.own && (row.own->result().scaled() || !row.accumulated.certain())) return;
    }
    if (forcing_) row.accumulated.rescale(x_);
  }
  // A View of integers may be the only value with the name of another step's result.
  const bool numeric = value.params || is_float(v.dtype);
  const bool computed = !passes_elements(op) || (op == Op::kView && value.params);
  if (forcing_ && numeric && computed) write_numbers(v, value.params, x_);
}

std::vector<const LayerNoise::Row*> LayerNoise::rows() const {
  std::vector<const Row*> list;
  for (const auto& [at, row] : rows_)
    if (row.accumulated.certain()) list.push_back(&row);
  return list;
}

}  // namespace sinter::convert

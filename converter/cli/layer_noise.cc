#include "converter/cli/layer_noise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string_view>

#include "converter/ir/builder.h"
#include "converter/report/errors.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// What quantizers, this one and others, append to the name of the value that they round.
std::string base_of(const std::string& name) {
  static constexpr std::string_view kEndings[] = {
      ".int8", ".int16", ".uint8", "_QuantizeLinear_Output", "_DequantizeLinear_Output", "_quantized"};
  for (const std::string_view ending : kEndings)
    if (name.size() > ending.size() && name.ends_with(ending))
      return name.substr(0, name.size() - ending.size());
  return name;
}

bool only_moves(Op op) {
  switch (op) {
    case Op::kView:
    case Op::kCopy:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kTile:
    case Op::kBroadcast:
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
    case Op::kConcat:
    case Op::kMaxPool:
    case Op::kPad:
    case Op::kReverseSequence:
      return true;
    default:
      return false;
  }
}

bool numbers(DType t) { return t == DType::kFloat32 || t == DType::kFloat64 || is_integer(t); }

// Calls `use(element pointer, position in dense order)` for every element.
template <class Use>
void each_element(const TensorView& v, const Use& use) {
  const int64_t count = v.size();
  int64_t at[kMaxRank] = {};
  std::byte* p = v.data;
  for (int64_t i = 0; i < count; ++i) {
    use(p, i);
    for (int d = v.rank - 1; d >= 0; --d) {
      p += v.strides[d];
      if (++at[d] < v.dims[d]) break;
      p -= v.strides[d] * v.dims[d], at[d] = 0;
    }
  }
}

// Calls use(T{}) with the element type.
template <class Use>
void with_type(DType t, const Use& use) {
  switch (t) {
    case DType::kFloat32:
      return use(float{});
    case DType::kFloat64:
      return use(double{});
    case DType::kInt8:
      return use(int8_t{});
    case DType::kUint8:
      return use(uint8_t{});
    case DType::kInt16:
      return use(int16_t{});
    case DType::kUint16:
      return use(uint16_t{});
    case DType::kInt32:
      return use(int32_t{});
    case DType::kUint32:
      return use(uint32_t{});
    case DType::kInt64:
      return use(int64_t{});
    case DType::kUint64:
      return use(uint64_t{});
    default:
      return;
  }
}

bool integers_of(const TensorView& v, const std::optional<QuantParams>& p) { return p && p->type == v.dtype; }

// The numbers that a value stands for, dense.
void read_numbers(const TensorView& v, const std::optional<QuantParams>& p, std::vector<double>* out) {
  out->resize(static_cast<size_t>(v.size()));
  const double scale = integers_of(v, p) ? p->scale : 1;
  const double zero = integers_of(v, p) ? static_cast<double>(p->zero) : 0;
  with_type(v.dtype, [&](auto type) {
    each_element(v, [&](const std::byte* at, int64_t i) {
      decltype(type) item;
      std::memcpy(&item, at, sizeof(item));
      (*out)[static_cast<size_t>(i)] = (static_cast<double>(item) - zero) * scale;
    });
  });
}

void write_numbers(const TensorView& v, const std::optional<QuantParams>& p, const std::vector<double>& x) {
  const bool rounds = integers_of(v, p);
  with_type(v.dtype, [&](auto type) {
    using T = decltype(type);
    each_element(v, [&](std::byte* at, int64_t i) {
      const double number = x[static_cast<size_t>(i)];
      const T item =
          rounds ? static_cast<T>(p->quantize(std::isnan(number) ? 0 : number)) : static_cast<T>(number);
      std::memcpy(at, &item, sizeof(item));
    });
  });
}

ConstantPtr transposed(const ConstantPtr& c, const std::vector<int64_t>& perm) {
  if (perm.empty()) return c;
  std::vector<ConstantPtr> moved;
  if (perm.size() != c->dims().size() ||
      !evaluate(TransposeAttrs{IntList(std::span<const int64_t>(perm))}, {c}, 1, &moved).ok())
    return nullptr;
  return moved[0];
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
  if (v.unit() <= 0 || quant_range(type).max == 0) return std::nullopt;
  return QuantParams{type, static_cast<double>(v.unit()), v.zero()};
}

}  // namespace

std::vector<std::vector<StepValue>> step_values(const Model& model) {
  const fb::Model& root = *model.state()->root;
  const fb::Program& program = *root.programs()->Get(0);
  const auto text = [](const auto* list, int32_t index) {
    return list != nullptr && index >= 0 && static_cast<uint32_t>(index) < list->size()
               ? list->Get(static_cast<uint32_t>(index))->str()
               : std::string();
  };
  std::vector<std::vector<StepValue>> result;
  for (uint32_t s = 0; s < model.step_count(); ++s) {
    result.emplace_back();
    for (const int32_t id : detail::items(program.steps()->Get(s)->outputs())) {
      StepValue value;
      if (id >= 0 && root.debug() != nullptr) {
        const fb::Value& v = *program.values()->Get(static_cast<uint32_t>(id));
        value.name = text(root.debug()->names(), v.name());
        value.base = base_of(value.name);
        value.params = params_of(v);
        std::istringstream axes(text(root.debug()->orders(), v.name()));
        for (int64_t axis; axes >> axis;) value.order.push_back(axis);
      }
      result.back().push_back(std::move(value));
    }
  }
  return result;
}

bool has_quantized_values(const Model& model) {
  const fb::Program& program = *model.state()->root->programs()->Get(0);
  for (uint32_t i = 0; i < detail::length(program.values()); ++i)
    if (program.values()->Get(i)->unit() > 0) return true;
  return false;
}

void ExactLayers::run(HostSession& session) {
  exact_.clear(), derived_.clear();
  Session& s = session.session();
  for (uint32_t i = 0; i < s.input_count(); ++i) {
    const TensorView v = s.input(i);
    std::vector<double> items;
    if (!numbers(v.dtype)) continue;
    read_numbers(v, std::nullopt, &items);
    exact_[s.model().input(i).name] =
        Constant::of<double>(DType::kFloat64, Dims(v.dims, v.dims + v.rank), std::span<const double>(items));
  }
  const StepObserver observer{this, nullptr, ExactLayers::after};
  session.session().set_observer(&observer);
  session.run();
  session.session().set_observer(nullptr);
}

void ExactLayers::after(void* self, const StepInfo& info, const OpCall& call) {
  auto& me = *static_cast<ExactLayers*>(self);
  if (info.program != 0) return;
  const std::vector<StepValue>& values = me.values_[info.step];
  for (size_t i = 0; i < call.outputs.size() && i < values.size(); ++i) {
    const TensorView& v = call.outputs[i];
    if (!v.present() || values[i].name.empty() || !numbers(v.dtype)) continue;
    std::vector<double> items;
    read_numbers(v, values[i].params, &items);
    ConstantPtr array =
        Constant::of<double>(DType::kFloat64, Dims(v.dims, v.dims + v.rank), std::span<const double>(items));
    array = transposed(array, inverse(values[i].order));
    if (!array) continue;
    if (values[i].params) me.quantized_.insert(values[i].name);
    me.exact_[values[i].name] = array;
    if (values[i].base == values[i].name) continue;
    if (values[i].params || is_float(v.dtype)) me.derived_[values[i].base] = array;
  }
}

ConstantPtr ExactLayers::find(const StepValue& value) const {
  const auto in = [](const auto& map, const std::string& name) {
    const auto at = map.find(name);
    return at == map.end() ? nullptr : at->second;
  };
  if (ConstantPtr same = value.params ? in(exact_, value.name) : nullptr;
      same && quantized_.contains(value.name))
    return same;
  const ConstantPtr base = in(exact_, value.base);
  return base ? base : in(derived_, value.base);
}

LayerNoise::LayerNoise(const Model& model) : model_(model), values_(step_values(model)) {}

void LayerNoise::run(HostSession& session, const ExactLayers& exact, const Judge& judge) {
  exact_ = &exact, judge_ = &judge;
  const StepObserver observer{this, nullptr, [](void* self, const StepInfo& info, const OpCall& call) {
                                if (info.program == 0) static_cast<LayerNoise*>(self)->see(info.step, call);
                              }};
  // What the run overwrites are the session's inputs, too.
  std::vector<Bytes> inputs;
  Session& s = session.session();
  for (uint32_t i = 0; i < s.input_count(); ++i) {
    const TensorView v = s.input(i);
    inputs.emplace_back(v.data, v.data + v.dense_bytes());
  }
  s.set_observer(&observer);
  for (const bool forcing : {true, false}) {
    forcing_ = forcing;
    for (uint32_t i = 0; i < s.input_count(); ++i)
      if (!inputs[i].empty()) std::memcpy(s.input(i).data, inputs[i].data(), inputs[i].size());
    session.run();
  }
  s.set_observer(nullptr);
}

void LayerNoise::see(uint32_t step, const OpCall& call) {
  const std::vector<StepValue>& values = values_[step];
  for (size_t i = 0; i < call.outputs.size() && i < values.size(); ++i) {
    const TensorView& v = call.outputs[i];
    const StepValue& value = values[i];
    if (!v.present() || value.name.empty() || !numbers(v.dtype)) continue;
    ConstantPtr exact = exact_->find(value);
    if (exact) exact = transposed(exact, value.order);
    if (!exact || exact->dims() != Dims(v.dims, v.dims + v.rank)) continue;
    // Integers of which nobody said what they stand for; or an ONNX value of that name that has other
    // integers.
    if (value.base != value.name && !value.params && !is_float(v.dtype)) continue;
    x_ = exact->as_doubles();
    read_numbers(v, value.params, &y_);
    const auto [name, fresh] = first_.emplace(value.base, step);
    const bool repeats = name->second != step && call.op == Op::kDequantize;
    if (!repeats) {
      Row& row = rows_[{step, i}];
      const int64_t channels = v.rank > 0 ? v.dims[v.rank - 1] : 0;
      if (row.name.empty()) {
        row.step = step, row.name = value.base, row.node = model_.step_name(step),
        row.op = model_.step_op(step);
        row.dtype = v.dtype, row.judged = rows_.size() - 1;
        row.accumulated = NoiseMeter(channels, value.params);
        if (!only_moves(call.op)) row.own = NoiseMeter(channels, value.params);
      }
      TensorView x = v, y = v;
      x.dtype = y.dtype = DType::kFloat64;
      x.set_shape(v.shape()), y.set_shape(v.shape());
      x.data = reinterpret_cast<std::byte*>(x_.data()), y.data = reinterpret_cast<std::byte*>(y_.data());
      if (!forcing_) {
        row.accumulated.add(x, y);
        if (*judge_) (*judge_)(row, {x_, y_, v.dtype});
      } else if (row.own) {
        row.own->add(x, y);
        // What is held with other factors cannot be replaced; what reads it gets it as it came.
        if (row.own->result().scaled()) continue;
      }
    }
    const bool numeric = value.params || v.dtype == DType::kFloat32 || v.dtype == DType::kFloat64;
    if (forcing_ && numeric && !only_moves(call.op)) write_numbers(v, value.params, x_);
  }
}

std::vector<const LayerNoise::Row*> LayerNoise::rows() const {
  std::vector<const Row*> list;
  for (const auto& [at, row] : rows_) list.push_back(&row);
  return list;
}

}  // namespace sinter::convert

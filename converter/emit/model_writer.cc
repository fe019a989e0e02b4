#include "converter/emit/model_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "converter/emit/text_table.h"
#include "runtime/core/custom_definition.h"
#include "runtime/model/lives.h"
#include "runtime/model/verify.h"
#include "schemas/generated/model_generated.h"

namespace sinter::convert {
namespace {

using flatbuffers::Offset;

// A builder that writes equal lists and tables once, because they repeat in almost every step.
class Builder : public flatbuffers::FlatBufferBuilder {
 public:
  template <class T>
  Offset<flatbuffers::Vector<T>> list(const std::vector<T>& items) {
    static_assert(std::is_integral_v<T> || std::is_floating_point_v<T>);
    const std::string_view bytes(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    const auto [at, fresh] = written_.emplace(fmt::format("{} {}", sizeof(T), bytes), 0);
    if (fresh) at->second = CreateVector(items).o;
    return at->second;
  }
  template <class T>
  Offset<flatbuffers::Vector<T>> list_or_none(const std::vector<T>& items) {
    return items.empty() ? 0 : list(items);
  }
  // Returns a table that `create` makes of numbers and lists; an equal table is written once.
  template <class Table, class... Fields>
  Offset<Table> table(Offset<Table> (*create)(flatbuffers::FlatBufferBuilder&, Fields...),
                      std::type_identity_t<Fields>... fields) {
    const auto number = [](auto field) {
      if constexpr (requires { field.o; })
        return fmt::format("@{}", field.o);
      else if constexpr (std::is_enum_v<decltype(field)>)
        return fmt::format("{}", static_cast<int64_t>(field));
      else
        return fmt::format("{}", field);
    };
    std::string key = fmt::format("{}", reinterpret_cast<uintptr_t>(create));
    ((key += ' ', key += number(fields)), ...);
    const auto [at, fresh] = written_.emplace(std::move(key), 0);
    if (fresh) at->second = create(*this, fields...).o;
    return at->second;
  }

 private:
  std::map<std::string, flatbuffers::uoffset_t> written_;
};

// Writes a model. Subprograms are counted from 0 within their PlannedModel, and from `base` in the file.
class ModelWriter {
 public:
  ModelWriter(std::span<const PlannedModel> profiles, const EmitOptions& options, ConstantPool::Layout layout)
      : profiles_(profiles), options_(options), pool_(layout) {
    for (const PlannedModel& model : profiles) {
      entries_.push_back(entries(model));
      for (const PlannedProgram& planned : model.programs) add_texts(*planned.graph);
    }
    texts_.place();
  }

  WrittenModel build() {
    std::vector<uint32_t> bases;  // the first program of each profile
    for (size_t p = 0; p < profiles_.size(); ++p) {
      bases.push_back(shared_base(p, bases).value_or(static_cast<uint32_t>(programs_.size())));
      if (bases.back() < programs_.size()) continue;
      for (size_t i = 0; i < profiles_[p].programs.size(); ++i)
        programs_.push_back(program(builder_, p, i, bases.back()));
    }
    std::vector<Offset<fb::Constant>> constants;
    for (const ConstantPool::Entry& e : pool_.entries())
      constants.push_back(fb::CreateConstant(builder_, static_cast<uint8_t>(e.constant->dtype()),
                                             builder_.list(e.constant->dims()), 0, e.offset));
    std::vector<Offset<fb::Profile>> profiles;
    for (size_t p = 0; p < profiles_.size(); ++p) profiles.push_back(profile(p, bases[p]));
    const auto debug =
        options_.strip_names ? 0 : fb::CreateDebug(builder_, 0, 0, 0, builder_.CreateVector(texts_.bytes()));
    // One after the other, because compilers differ in the order in which they compute a call's arguments.
    const auto profile_list = builder_.CreateVector(profiles);
    const auto constant_list = builder_.CreateVector(constants);
    const auto program_list = builder_.CreateVector(programs_);
    const auto producer = builder_.CreateString(options_.producer);
    const auto metadata = metadata_list();
    const auto root = fb::CreateModel(builder_, producer, program_list, constant_list, profile_list, debug,
                                      metadata, labels_list());
    fb::FinishModelBuffer(builder_, root);
    return {{builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize()},
            std::move(pool_)};
  }

 private:
  // Returns which programs are not a part of another one.
  static std::vector<bool> entries(const PlannedModel& model) {
    std::vector<bool> entry(model.programs.size(), true);
    for (const PlannedProgram& p : model.programs)
      for (const PlannedStep& s : p.steps)
        for (const uint32_t sub : s.subprograms) entry[sub] = false;
    return entry;
  }

  // Returns the first program of an earlier profile whose programs all equal this one's.
  std::optional<uint32_t> shared_base(size_t profile, const std::vector<uint32_t>& bases) {
    if (profiles_.size() == 1) return std::nullopt;
    std::vector<std::vector<uint8_t>> mine;
    for (size_t i = 0; i < profiles_[profile].programs.size(); ++i) {
      Builder alone;
      alone.Finish(program(alone, profile, i, 0));
      mine.emplace_back(alone.GetBufferPointer(), alone.GetBufferPointer() + alone.GetSize());
    }
    const auto same = static_cast<size_t>(std::find(forms_.begin(), forms_.end(), mine) - forms_.begin());
    forms_.push_back(std::move(mine));
    return same < bases.size() ? std::optional(bases[same]) : std::nullopt;
  }

  Offset<fb::Program> program(Builder& b, size_t profile, size_t index, uint32_t base) {
    const PlannedProgram& planned = profiles_[profile].programs[index];
    const bool entry = entries_[profile][index];
    const Graph& graph = *planned.graph;
    std::vector<bool> prepared(graph.values.size());
    for (const Node& node : graph.prepare) prepared[static_cast<size_t>(node.outputs[0])] = true;
    std::vector<Offset<fb::Step>> steps, prepare;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      std::vector<uint32_t> subprograms = planned.steps[n].subprograms;
      for (uint32_t& sub : subprograms) sub += base;
      steps.push_back(step(b, graph.nodes[n], subprograms));
    }
    for (const Node& node : graph.prepare) prepare.push_back(step(b, node, {}));
    std::vector<Offset<fb::Value>> values;
    for (size_t i = 0; i < graph.values.size(); ++i)
      values.push_back(value(b, graph, static_cast<ValueId>(i), prepared[i]));
    const auto ports = [&](const std::vector<ValueId>& ids) {
      std::vector<Offset<fb::Port>> list;
      for (const ValueId id : ids) {
        const auto name = entry ? b.CreateString(graph.value(id).name) : 0;
        list.push_back(fb::CreatePort(b, static_cast<uint32_t>(id), name));
      }
      return b.CreateVector(list);
    };
    const auto value_list = b.CreateVector(values);
    const auto step_list = b.CreateVector(steps);
    const auto prepare_list = prepare.empty() ? 0 : b.CreateVector(prepare);
    std::vector<ValueId> given = graph.inputs, read = graph.outputs;
    std::erase_if(given, [&](ValueId id) {
      return graph.state_read(id) != nullptr || graph.given_length(id) != nullptr;
    });
    std::erase_if(read, [&](ValueId id) { return graph.state_written(id) != nullptr; });
    const auto inputs = ports(given), outputs = ports(read);
    const auto states = graph.states.empty() ? 0 : state_ports(b, graph);
    const auto lengths = graph.lengths.empty() ? 0 : given_lengths(b, graph);
    const ProgramTexts texts = program_texts(b, graph);
    return fb::CreateProgram(b, value_list, step_list, prepare_list, inputs, outputs, states, lengths,
                             texts.values, texts.steps, texts.origins, texts.orders);
  }

  static std::string order_text(const Value& v) { return fmt::format("{}", fmt::join(v.order, " ")); }

  void add_texts(const Graph& graph) {
    for (const Value& v : graph.values) texts_.add(v.name), texts_.add(order_text(v));
    for (const auto* nodes : {&graph.nodes, &graph.prepare})
      for (const Node& node : *nodes) texts_.add(node.name), texts_.add(node.origin);
  }

  struct ProgramTexts {
    Offset<flatbuffers::Vector<uint32_t>> values = 0, steps = 0, origins = 0;
    Offset<flatbuffers::Vector<const fb::ValueOrder*>> orders = 0;
  };
  ProgramTexts program_texts(Builder& b, const Graph& graph) const {
    if (options_.strip_names) return {};
    std::vector<uint32_t> values, steps, origins;
    std::vector<fb::ValueOrder> orders;
    for (const Value& v : graph.values) {
      if (!v.order.empty())
        orders.emplace_back(static_cast<uint32_t>(values.size()), texts_.at(order_text(v)));
      values.push_back(texts_.at(v.name));
    }
    for (const auto* nodes : {&graph.nodes, &graph.prepare})
      for (const Node& node : *nodes)
        steps.push_back(texts_.at(node.name)), origins.push_back(texts_.at(node.origin));
    return {b.list(values), b.list(steps), b.list(origins),
            orders.empty() ? 0 : b.CreateVectorOfStructs(orders)};
  }

  static Offset<flatbuffers::Vector<Offset<fb::Length>>> given_lengths(Builder& b, const Graph& graph) {
    std::vector<Offset<fb::Length>> list;
    for (const GraphLength& length : graph.lengths) {
      const auto name = b.CreateString(length.name);
      list.push_back(fb::CreateLength(b, static_cast<uint32_t>(graph.inputs[length.input]), length.minimum,
                                      length.maximum, name));
    }
    return b.CreateVector(list);
  }

  static Offset<flatbuffers::Vector<Offset<fb::StatePort>>> state_ports(Builder& b, const Graph& graph) {
    std::vector<const GraphState*> states;
    for (const GraphState& s : graph.states) states.push_back(&s);
    std::sort(states.begin(), states.end(), [&](const GraphState* x, const GraphState* y) {
      return graph.inputs[x->input] < graph.inputs[y->input];
    });
    std::vector<Offset<fb::StatePort>> list;
    for (const GraphState* s : states) {
      const auto input = b.CreateString(s->input_name), output = b.CreateString(s->output_name);
      list.push_back(fb::CreateStatePort(b, static_cast<uint32_t>(graph.inputs[s->input]), input, output));
    }
    return b.CreateVector(list);
  }

  Offset<fb::Value> value(Builder& b, const Graph& graph, ValueId id, bool prepared) {
    const Value& v = graph.value(id);
    const auto dims = b.list(v.dims);
    std::vector<fb::BoundedDim> bounded;
    for (const auto& [axis, count] : v.bounded_dims) bounded.emplace_back(axis, count);
    const auto bounded_dims = bounded.empty() ? 0 : b.CreateVectorOfStructs(bounded);
    const GraphState* state = graph.state_read(id);
    const fb::ValueKind kind = prepared             ? fb::ValueKind::Prepared
                               : state != nullptr   ? fb::ValueKind::State
                               : v.constant         ? fb::ValueKind::Constant
                               : graph.is_input(id) ? fb::ValueKind::Input
                                                    : fb::ValueKind::Temporary;
    const int32_t constant = v.constant && !prepared ? pool_.add(v.constant) : -1;
    const int32_t initial = state != nullptr && state->initial ? pool_.add(state->initial) : -1;
    const int32_t update = state != nullptr ? graph.outputs[state->output] : -1;
    return b.table(&fb::CreateValue, static_cast<uint8_t>(v.dtype), dims, kind, constant, initial, update,
                   bounded_dims, -1, static_cast<float>(v.scale), static_cast<int32_t>(v.zero_point));
  }

  Offset<fb::Step> step(Builder& b, const Node& node, const std::vector<uint32_t>& subprograms) {
    const EncodedAttrs attrs = encode_attrs(node.attrs);
    const auto inputs = b.list(node.inputs), outputs = b.list(node.outputs);
    const auto ints = b.list_or_none(attrs.ints);
    const auto floats = b.list_or_none(attrs.floats);
    if (node.op() == Op::kCustom && !attrs.bytes.empty())
      b.ForceVectorAlignment(attrs.bytes.size(), 1, kDefinitionAlignment);
    const auto bytes = attrs.bytes.empty() ? 0 : b.CreateVector(attrs.bytes);
    const auto subs = b.list_or_none(subprograms);
    return fb::CreateStep(b, static_cast<uint16_t>(node.op()), op_info(node.op())->version, inputs, outputs,
                          ints, floats, bytes, subs);
  }

  Offset<flatbuffers::Vector<Offset<fb::Metadata>>> metadata_list() {
    std::vector<Offset<fb::Metadata>> list;
    for (const auto& [key, text] : options_.texts.metadata) {
      const auto name = builder_.CreateString(key), value = builder_.CreateString(text);
      list.push_back(fb::CreateMetadata(builder_, name, value));
    }
    return list.empty() ? 0 : builder_.CreateVector(list);
  }

  Offset<flatbuffers::Vector<Offset<fb::Labels>>> labels_list() {
    std::vector<Offset<fb::Labels>> list;
    for (const auto& [output, texts] : options_.texts.labels) {
      const auto name = builder_.CreateString(output);
      list.push_back(fb::CreateLabels(builder_, name, builder_.CreateVectorOfStrings(texts)));
    }
    return list.empty() ? 0 : builder_.CreateVector(list);
  }

  Offset<fb::Profile> profile(size_t index, uint32_t base) {
    const PlannedModel& model = profiles_[index];
    std::vector<Offset<fb::ProgramPlan>> plans;
    for (size_t i = 0; i < model.programs.size(); ++i)
      plans.push_back(plan(model.programs[i], base + static_cast<uint32_t>(i)));
    std::vector<uint32_t> entry_programs;
    for (size_t i = 0; i < model.programs.size(); ++i)
      if (entries_[index][i]) entry_programs.push_back(base + static_cast<uint32_t>(i));
    const auto name = builder_.CreateSharedString(model.target);
    const auto backends = builder_.CreateVectorOfStrings(model.backends);
    const auto entry_list = builder_.CreateVector(entry_programs);
    return fb::CreateProfile(builder_, name, name, static_cast<uint8_t>(model.architecture), backends,
                             entry_list, builder_.CreateVector(plans));
  }

  Offset<fb::ProgramPlan> plan(const PlannedProgram& planned, uint32_t index) {
    std::vector<Offset<fb::StepPlan>> steps;
    for (const PlannedStep& s : planned.steps) {
      const auto candidates = builder_.list(s.candidates);
      Offset<flatbuffers::Vector<Offset<fb::DeviceWorkspace>>> there = 0;
      if (!s.device_workspaces.empty()) {
        std::vector<Offset<fb::DeviceWorkspace>> list;
        for (const PlannedDeviceWorkspace& w : s.device_workspaces)
          list.push_back(fb::CreateDeviceWorkspace(builder_, w.region, w.offset, w.bytes));
        there = builder_.CreateVector(list);
      }
      steps.push_back(builder_.table(&fb::CreateStepPlan, candidates, s.workspace_region, s.workspace_offset,
                                     s.workspace_bytes, s.max_threads, s.elided, s.in_order, there));
    }
    // Placements leave out bytes, which values define, and live ranges that are those of the steps.
    std::vector<detail::Life> lives(planned.values.size());
    detail::find_lives(*flatbuffers::GetTemporaryPointer(builder_, programs_[index]), lives);
    const auto stated = [](int planned_step, int32_t own) {
      return planned_step != own ? planned_step : detail::Life::kNever;
    };
    std::vector<Offset<fb::Placement>> placements;
    for (size_t i = 0; i < planned.values.size(); ++i) {
      const PlannedValue& v = planned.values[i];
      if (!v.placed) continue;
      const auto strides = builder_.list_or_none(v.strides);
      placements.push_back(fb::CreatePlacement(builder_, static_cast<uint32_t>(i), v.region, v.offset, 0,
                                               stated(v.first_step, lives[i].first),
                                               stated(v.last_step, lives[i].last), v.alias_of, strides));
    }
    std::vector<Offset<fb::Region>> regions;
    for (const PlannedRegion& r : planned.regions)
      regions.push_back(fb::CreateRegion(builder_, r.bytes, r.memory));
    const auto step_list = builder_.CreateVector(steps);
    const auto placement_list = builder_.CreateVector(placements);
    return fb::CreateProgramPlan(builder_, index, step_list, placement_list, builder_.CreateVector(regions));
  }

  const std::span<const PlannedModel> profiles_;
  const EmitOptions& options_;
  Builder builder_;
  std::vector<Offset<fb::Program>> programs_;
  ConstantPool pool_;
  TextTable texts_;
  std::vector<std::vector<bool>> entries_;                // by profile and program
  std::vector<std::vector<std::vector<uint8_t>>> forms_;  // the profiles' programs as bytes
};

}  // namespace

WrittenModel write_model(std::span<const PlannedModel> profiles, const EmitOptions& options,
                         ConstantPool::Layout layout) {
  return ModelWriter(profiles, options, layout).build();
}

std::vector<format::Segment> weights_segment(const ConstantPool& pool) {
  if (pool.segment_bytes() == 0) return {};
  format::Segment weights{};
  weights.bytes = pool.segment_bytes();
  weights.kind = static_cast<uint32_t>(format::SegmentKind::kWeights);
  return {weights};
}

format::Header header_of(std::span<const uint8_t> flatbuffer, std::span<format::Segment> segments,
                         format::DigestAlgorithm algorithm) {
  format::Header header{};
  header.flatbuffer_bytes = flatbuffer.size();
  if (!format::lay_out(header, segments, algorithm == format::DigestAlgorithm::kBlake2b).ok())
    throw std::length_error("the model is too large for one file");
  header.scratch_bytes = detail::open_scratch_bytes(fb::GetModel(flatbuffer.data()));
  header.flatbuffer_digest = format::digest_of(std::as_bytes(flatbuffer), algorithm);
  return header;
}

}  // namespace sinter::convert

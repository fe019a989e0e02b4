#include "converter/emit/emitter.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "converter/diagnostics/errors.h"
#include "converter/emit/constant_pool.h"
#include "converter/files/pending_file.h"
#include "runtime/model/format.h"
#include "runtime/model/verify.h"
#include "schemas/generated/model_generated.h"

namespace sinter::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// Names of values and steps, each once.
class NameTable {
 public:
  explicit NameTable(bool strip) : strip_(strip) {}
  int32_t add(const std::string& name, const std::string& origin, const std::vector<int>& order = {}) {
    if (strip_ || name.empty()) return -1;
    const auto [it, fresh] = index_.emplace(Entry{name, origin, fmt::format("{}", fmt::join(order, " "))},
                                            static_cast<int32_t>(entries_.size()));
    if (fresh) entries_.push_back(&it->first);
    return it->second;
  }
  Offset<fb::Debug> write(FlatBufferBuilder& builder) const {
    const auto column = [&](size_t field) {
      std::vector<Offset<flatbuffers::String>> strings;
      for (const Entry* e : entries_) strings.push_back(builder.CreateSharedString((*e)[field]));
      return builder.CreateVector(strings);
    };
    const auto names = column(0), origins = column(1), orders = column(2);
    return fb::CreateDebug(builder, names, origins, orders);
  }

 private:
  using Entry = std::array<std::string, 3>;  // name, origin, order
  bool strip_;
  std::map<Entry, int32_t> index_;
  std::vector<const Entry*> entries_;
};

class ModelWriter {
 public:
  ModelWriter(const PlannedModel& model, const EmitOptions& options)
      : model_(model), options_(options), names_(options.strip_names) {}

  // Builds the FlatBuffer; the pool lists what the weights segment holds.
  std::vector<uint8_t> build() {
    std::vector<Offset<fb::Program>> programs;
    for (size_t i = 0; i < model_.programs.size(); ++i)
      programs.push_back(program(model_.programs[i], i == 0));
    std::vector<Offset<fb::Constant>> constants;
    for (const ConstantPool::Entry& e : pool_.entries())
      constants.push_back(fb::CreateConstant(builder_, static_cast<uint8_t>(e.constant->dtype()),
                                             builder_.CreateVector(e.constant->dims()), 0, e.offset,
                                             e.constant->byte_size()));
    const auto profiles = std::vector{profile()};
    const auto root = fb::CreateModel(builder_, builder_.CreateString(options_.producer),
                                      builder_.CreateVector(programs), builder_.CreateVector(constants),
                                      builder_.CreateVector(profiles), names_.write(builder_));
    fb::FinishModelBuffer(builder_, root);
    return {builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize()};
  }
  const ConstantPool& pool() const { return pool_; }

 private:
  Offset<fb::Program> program(const PlannedProgram& planned, bool entry) {
    const Graph& graph = *planned.graph;
    std::vector<bool> prepared(graph.values.size());
    for (const Node& node : graph.prepare) prepared[static_cast<size_t>(node.outputs[0])] = true;
    std::vector<Offset<fb::Value>> values;
    for (size_t i = 0; i < graph.values.size(); ++i)
      values.push_back(value(graph, static_cast<ValueId>(i), prepared[i]));
    std::vector<Offset<fb::Step>> steps, prepare;
    for (size_t n = 0; n < graph.nodes.size(); ++n) steps.push_back(step(graph.nodes[n], planned.steps[n]));
    for (const Node& node : graph.prepare) prepare.push_back(step(node, {}));
    const auto ports = [&](const std::vector<ValueId>& ids) {
      std::vector<Offset<fb::Port>> list;
      for (const ValueId id : ids) {
        const auto name = entry ? builder_.CreateString(graph.value(id).name) : 0;
        list.push_back(fb::CreatePort(builder_, static_cast<uint32_t>(id), name));
      }
      return builder_.CreateVector(list);
    };
    const auto name = builder_.CreateString(graph.name);
    const auto value_list = builder_.CreateVector(values);
    const auto step_list = builder_.CreateVector(steps);
    const auto prepare_list = prepare.empty() ? 0 : builder_.CreateVector(prepare);
    const auto inputs = ports(graph.inputs), outputs = ports(graph.outputs);
    return fb::CreateProgram(builder_, name, value_list, step_list, prepare_list, inputs, outputs);
  }

  Offset<fb::Value> value(const Graph& graph, ValueId id, bool prepared) {
    const Value& v = graph.value(id);
    const auto dims = builder_.CreateVector(v.dims);
    std::vector<fb::Extent> extents;
    for (const auto& [axis, count] : v.extents) extents.emplace_back(axis, count);
    const auto extent_list = extents.empty() ? 0 : builder_.CreateVectorOfStructs(extents);
    const fb::ValueKind kind = prepared             ? fb::ValueKind::Prepared
                               : v.constant         ? fb::ValueKind::Constant
                               : graph.is_input(id) ? fb::ValueKind::Input
                                                    : fb::ValueKind::Temporary;
    const int32_t constant = v.constant && !prepared ? pool_.add(v.constant) : -1;
    return fb::CreateValue(builder_, static_cast<uint8_t>(v.dtype), dims, kind, constant, -1, -1, extent_list,
                           0, names_.add(v.name, {}, v.order), -1, -1, -1, static_cast<float>(v.unit),
                           static_cast<int32_t>(v.zero));
  }

  Offset<fb::Step> step(const Node& node, const PlannedStep& planned) {
    std::vector<int64_t> ints;
    std::vector<double> floats;
    encode_attrs(node.attrs, &ints, &floats);
    const auto inputs = builder_.CreateVector(node.inputs), outputs = builder_.CreateVector(node.outputs);
    const auto int_list = ints.empty() ? 0 : builder_.CreateVector(ints);
    const auto float_list = floats.empty() ? 0 : builder_.CreateVector(floats);
    const auto subprograms = planned.subprograms.empty() ? 0 : builder_.CreateVector(planned.subprograms);
    return fb::CreateStep(builder_, static_cast<uint16_t>(node.op()), op_info(node.op())->version, inputs,
                          outputs, int_list, float_list, subprograms, names_.add(node.name, node.origin));
  }

  Offset<fb::Profile> profile() {
    std::vector<Offset<fb::ProgramPlan>> plans;
    for (size_t i = 0; i < model_.programs.size(); ++i)
      plans.push_back(plan(model_.programs[i], static_cast<uint32_t>(i)));
    std::vector<Offset<fb::Region>> regions;
    for (const PlannedRegion& r : model_.programs[0].regions)
      regions.push_back(fb::CreateRegion(builder_, fb::RegionKind::Arena, r.memory, r.bytes));
    const auto name = builder_.CreateString("default"), target = builder_.CreateString(model_.target),
               numerics = builder_.CreateString("float");
    const auto backends = builder_.CreateVectorOfStrings(model_.backends);
    return fb::CreateProfile(builder_, name, target, numerics, backends, builder_.CreateVector(regions),
                             builder_.CreateVector(plans));
  }

  Offset<fb::ProgramPlan> plan(const PlannedProgram& planned, uint32_t index) {
    std::vector<Offset<fb::StepPlan>> steps;
    for (const PlannedStep& s : planned.steps) {
      const auto candidates = builder_.CreateVector(s.candidates);
      steps.push_back(fb::CreateStepPlan(builder_, candidates, s.workspace_region, s.workspace_offset,
                                         s.workspace_bytes, s.max_threads, s.elided, s.in_order));
    }
    std::vector<Offset<fb::Placement>> placements;
    for (size_t i = 0; i < planned.values.size(); ++i) {
      const PlannedValue& v = planned.values[i];
      if (!v.placed) continue;
      const auto strides = v.strides.empty() ? 0 : builder_.CreateVector(v.strides);
      placements.push_back(fb::CreatePlacement(builder_, static_cast<uint32_t>(i), v.region, v.offset,
                                               v.bytes, v.first_step, v.last_step, v.alias_of, strides));
    }
    const auto step_list = builder_.CreateVector(steps);
    return fb::CreateProgramPlan(builder_, index, step_list, builder_.CreateVector(placements),
                                 planned.arena_bytes);
  }

  const PlannedModel& model_;
  const EmitOptions& options_;
  FlatBufferBuilder builder_;
  ConstantPool pool_;
  NameTable names_;
};

// 8 bytes of the text's length, then a zlib stream.
Bytes deflated(const std::string& text) {
  if (text.empty()) return {};
  uLongf length = compressBound(text.size());
  Bytes out(8 + length);
  const uint64_t size = text.size();
  std::memcpy(out.data(), &size, 8);
  if (compress2(reinterpret_cast<Bytef*>(out.data() + 8), &length,
                reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  out.resize(8 + length);
  return out;
}

}  // namespace

EmitSummary emit_model(const PlannedModel& model, const std::filesystem::path& path,
                       const EmitOptions& options) {
  ModelWriter writer(model, options);
  const std::vector<uint8_t> buffer = writer.build();
  const ConstantPool& pool = writer.pool();

  std::vector<format::Segment> segments;
  if (pool.segment_bytes() > 0) {
    format::Segment weights{};
    weights.bytes = pool.segment_bytes();
    weights.kind = static_cast<uint32_t>(format::SegmentKind::kWeights);
    segments.push_back(weights);
  }
  const Bytes debug = deflated(options.strip_names ? std::string() : options.debug_text);
  if (!debug.empty()) {
    format::Segment segment{};
    segment.bytes = debug.size();
    segment.kind = static_cast<uint32_t>(format::SegmentKind::kDebug);
    segments.push_back(segment);
  }
  format::Header header{};
  header.flatbuffer_bytes = buffer.size();
  const bool sign = options.signer != nullptr;
  const auto algorithm = sign ? format::DigestAlgorithm::kBlake2b : format::DigestAlgorithm::kXxh3;
  if (!format::lay_out(header, segments, sign).ok())
    throw std::length_error("the model is too large for one file");
  header.scratch_bytes = detail::open_scratch_bytes(fb::GetModel(buffer.data()));
  header.flatbuffer_digest = format::digest_of(std::as_bytes(std::span(buffer)), algorithm);

  PendingFile file(path);
  file.pad_to(header.flatbuffer_offset);  // the header comes last, when its digests are known
  file.write(buffer.data(), buffer.size());
  for (format::Segment& segment : segments) {
    file.pad_to(segment.offset);
    format::Digester digester(algorithm);
    uint64_t at = 0;
    const auto put = [&](std::span<const std::byte> bytes) {
      file.write(bytes.data(), bytes.size());
      digester.update(bytes);
      at += bytes.size();
    };
    const auto pad = [&](uint64_t to) {
      static constexpr std::array<std::byte, 64> kZeros{};
      while (at < to) put(std::span(kZeros).first(std::min<uint64_t>(kZeros.size(), to - at)));
    };
    if (segment.kind == static_cast<uint32_t>(format::SegmentKind::kDebug)) {
      put(debug);
    } else {
      for (const ConstantPool::Entry& e : pool.entries()) {
        if (e.shared) continue;
        pad(e.offset);
        put(e.constant->load().bytes);
      }
      pad(segment.bytes);
    }
    segment.digest = digester.finish();
  }
  format::Signature signature{};
  if (sign)
    signature = sign_head(header, segments, *options.signer);
  else
    format::seal(header, segments);
  file.rewrite_start(&header, sizeof(header));
  file.write(segments.data(), segments.size() * sizeof(format::Segment));
  if (sign) file.write(&signature, sizeof(signature));
  file.publish(options.check);
  return {header.file_bytes, pool.segment_bytes(), pool.entries().size()};
}

}  // namespace sinter::convert

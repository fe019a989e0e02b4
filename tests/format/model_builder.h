// Builds small .sinter files for tests, good or deliberately wrong.
//
//   ModelBuilder b;                         // program 0
//   int x = b.input("x", DType::kFloat32, {4});
//   int y = b.value(DType::kFloat32, {4});
//   b.step(ClampAttrs{.min = 0}, {x}, {y});
//   b.output("y", y);
//   AlignedBytes file = b.build();
//
// Every value gets memory of its own for the whole run, unless a test sets `place`. Regions besides the
// host's first: b.regions = {0, 1} (their memory kinds), b.place(y).region = 1. Programs that no step owns
// are entries; b.profiles states which of which profile.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/target.h"
#include "runtime/core/checked.h"
#include "runtime/core/op.h"
#include "runtime/core/tensor_view.h"
#include "runtime/model/format.h"
#include "runtime/model/verify.h"
#include "schemas/generated/model_generated.h"

namespace sinter::testing {

// Bytes aligned to kBufferAlignment.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size)
      : data_(static_cast<std::byte*>(
            std::aligned_alloc(kBufferAlignment, align_up(size + 1, kBufferAlignment)))),
        size_(size) {
    std::memset(data_.get(), 0, align_up(size + 1, kBufferAlignment));
  }
  AlignedBytes copy(size_t size) const {
    AlignedBytes out(size);
    std::memcpy(out.data(), data(), size < size_ ? size : size_);
    return out;
  }
  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data_.get(), size_}; }
  std::byte& operator[](size_t i) { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

struct EncodedAttrs {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<uint8_t> bytes;
  void operator()(const char*, int64_t v) { ints.push_back(v); }
  void operator()(const char*, double v) { floats.push_back(v); }
  void operator()(const char*, const IntList& v) {
    ints.push_back(v.size());
    ints.insert(ints.end(), v.begin(), v.end());
  }
  void operator()(const char*, const FloatList& v) {
    ints.push_back(v.size());
    floats.insert(floats.end(), v.begin(), v.end());
  }
  template <class T>
  void operator()(const char*, const AttrView<T>& v) {
    ints.push_back(v.size);
    const auto* data = reinterpret_cast<const uint8_t*>(v.data);
    bytes.insert(bytes.end(), data, data + v.size);
  }
};

struct PlaceSpec {
  int64_t offset = -1;  // -1: a fresh place
  int32_t first = -2, last = -2;
  int32_t alias_of = -1;
  int64_t alias_offset = 0;  // from the aliased value's offset, if offset is -1
  std::vector<int64_t> strides;
  int64_t bytes = -1;
  bool none = false;
  uint32_t region = 0;
};
struct ValueSpec {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> dims;
  fb::ValueKind kind = fb::ValueKind::Temporary;
  int32_t constant = -1, initial = -1, update = -1;
  PlaceSpec place;
  float scale = 0;
  std::vector<fb::BoundedDim> bounded_dims;
};
// Of a control step, in device memory; raised to what its subprograms need there unless it is exact.
struct WorkspaceSpec {
  uint32_t region = 1;
  uint64_t bytes = 0;
  int64_t offset = -1;  // -1: where there is room
  bool exact = false;
};
struct StepSpec {
  uint16_t op = 0, version = 1;
  std::vector<int32_t> inputs, outputs;
  EncodedAttrs attrs;
  std::vector<uint32_t> subprograms;
  std::vector<uint8_t> candidates;
  uint64_t workspace = 0;  // raised to what subprograms need
  uint32_t max_threads = 0;
  bool elided = false;
  uint32_t workspace_region = 0;
  bool in_order = false;
  std::vector<WorkspaceSpec> device_workspaces;  // one is added where a subprogram needs it
};
struct PortSpec {
  std::string name;
  uint32_t value;
  std::vector<int64_t> dims;
};
struct StatePortSpec {
  std::string input, output;
  uint32_t value;
};
struct LengthSpec {
  uint32_t value;
  int64_t minimum, maximum;
  std::string name;
};
struct ProgramSpec {
  std::vector<ValueSpec> values;
  std::vector<StepSpec> steps, prepare;
  std::vector<PortSpec> inputs, outputs;
  std::vector<StatePortSpec> states;    // those that have names
  std::vector<LengthSpec> lengths;      // that the caller gives
  uint32_t own_inputs = UINT32_MAX;     // inputs from here on are captured
  std::vector<uint8_t> memories = {0};  // of a subprogram's regions
  std::vector<uint64_t> regions;        // result of planning: their bytes
};
struct ProfileSpec {
  std::string name = "test", target = "portable";
  Architecture architecture = Architecture::kPortable;
  std::vector<uint32_t> entries = {0};
  std::vector<uint32_t> programs;  // that have a plan; empty: the entries and their subprograms
};

class ModelBuilder {
 public:
  ModelBuilder() { programs.emplace_back(); }

  // Everything below adds to this program.
  void enter(size_t program) {
    while (programs.size() <= program) programs.emplace_back();
    current_ = program;
  }
  ProgramSpec& program() { return programs[current_]; }

  int value(DType dtype, std::vector<int64_t> dims, fb::ValueKind kind = fb::ValueKind::Temporary) {
    ValueSpec spec;
    spec.dtype = dtype, spec.dims = std::move(dims), spec.kind = kind;
    program().values.push_back(std::move(spec));
    return static_cast<int>(program().values.size()) - 1;
  }
  int input(const std::string& name, DType dtype, std::vector<int64_t> dims) {
    const int v = value(dtype, std::move(dims), fb::ValueKind::Input);
    program().inputs.push_back({name, static_cast<uint32_t>(v), {}});
    return v;
  }
  // The length of bounded axes of inputs, which the caller gives.
  int length(const std::string& name, int64_t minimum, int64_t maximum) {
    const int v = value(DType::kInt64, {}, fb::ValueKind::Input);
    program().lengths.push_back({static_cast<uint32_t>(v), minimum, maximum, name});
    return v;
  }
  void bound(int v, int axis, int length) {
    program().values[static_cast<size_t>(v)].bounded_dims.emplace_back(axis, length);
  }
  // An input of a subprogram that its step captures; after all own inputs.
  int captured(DType dtype, std::vector<int64_t> dims) {
    if (program().own_inputs == UINT32_MAX)
      program().own_inputs = static_cast<uint32_t>(program().inputs.size());
    const int v = input("", dtype, std::move(dims));
    program().values[static_cast<size_t>(v)].place.none = true;
    return v;
  }
  void output(const std::string& name, int v) {
    program().outputs.push_back({name, static_cast<uint32_t>(v), {}});
  }
  template <class T>
  int constant(DType dtype, std::vector<int64_t> dims, const std::vector<T>& data) {
    const int v = value(dtype, dims, fb::ValueKind::Constant);
    program().values.back().constant = add_constant(dtype, dims, data);
    return v;
  }
  template <class T>
  int32_t add_constant(DType dtype, std::vector<int64_t> dims, const std::vector<T>& data) {
    const size_t offset = weights.size(), bytes = data.size() * sizeof(T);
    weights.resize(offset + align_up(bytes, 64));
    std::memcpy(weights.data() + offset, data.data(), bytes);
    constants.push_back({dtype, std::move(dims), offset});
    return static_cast<int32_t>(constants.size()) - 1;
  }
  // As if the file had it in packed form alone.
  void leave_out(size_t constant) {
    constants[constant].segment = detail::kLeftOut, constants[constant].offset = 0;
  }
  int state(DType dtype, std::vector<int64_t> dims, int32_t initial, int32_t update) {
    const int v = value(dtype, std::move(dims), fb::ValueKind::State);
    program().values.back().initial = initial, program().values.back().update = update;
    return v;
  }
  // The state's names in the model that it comes from.
  void name_state(int v, const std::string& input, const std::string& output) {
    program().states.push_back({input, output, static_cast<uint32_t>(v)});
  }
  template <class A>
  StepSpec& step(const A& attrs, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                 std::vector<uint32_t> subprograms = {}) {
    program().steps.push_back(make_step(attrs, std::move(inputs), std::move(outputs)));
    program().steps.back().subprograms = std::move(subprograms);
    return program().steps.back();
  }
  template <class A>
  StepSpec& prepare(const A& attrs, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    program().prepare.push_back(make_step(attrs, std::move(inputs), std::move(outputs)));
    return program().prepare.back();
  }
  PlaceSpec& place(int v) { return program().values[static_cast<size_t>(v)].place; }

  AlignedBytes build();

  struct ConstantSpec {
    DType dtype;
    std::vector<int64_t> dims;
    uint64_t offset;
    uint32_t segment = 0;
  };
  std::vector<ProgramSpec> programs;
  std::vector<ConstantSpec> constants;
  std::vector<std::byte> weights;
  std::vector<std::pair<std::string, std::string>> metadata;             // key and value
  std::vector<std::pair<std::string, std::vector<std::string>>> labels;  // an output and its classes
  std::vector<std::string> backends;
  std::vector<ProfileSpec> profiles = {{}};
  std::vector<uint8_t> regions = {0};  // of every entry: memory kinds
  uint64_t extra_weights = 64;         // padding after the last constant
  int64_t region_bytes = -1;           // of program 0's first region; overrides what the placements need
  uint64_t padding = 64;               // of every region
  uint64_t scratch_less = 0;           // to state too little scratch
  bool write_strides_always = false;
  bool bare_placements =
      false;  // without bytes and live ranges that the test does not give, as the converter writes

 private:
  template <class A>
  static StepSpec make_step(const A& attrs, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    StepSpec s;
    s.op = static_cast<uint16_t>(A::kOp);
    s.version = op_info(A::kOp)->version;
    s.inputs = std::move(inputs), s.outputs = std::move(outputs);
    visit_attrs(attrs, s.attrs);
    return s;
  }
  bool is_entry(uint32_t index) const {
    for (const ProgramSpec& p : programs)
      for (const StepSpec& s : p.steps)
        for (const uint32_t sub : s.subprograms)
          if (sub == index) return false;
    return true;
  }
  void add_parts(uint32_t index, std::vector<bool>* parts) const {
    if (index >= parts->size() || (*parts)[index]) return;
    (*parts)[index] = true;
    for (const StepSpec& s : programs[index].steps)
      for (const uint32_t sub : s.subprograms) add_parts(sub, parts);
  }
  flatbuffers::Offset<fb::ProgramPlan> plan(flatbuffers::FlatBufferBuilder& fbb, uint32_t index);
  flatbuffers::Offset<fb::Profile> profile(flatbuffers::FlatBufferBuilder& fbb, const ProfileSpec& spec);

  size_t current_ = 0;
};

inline flatbuffers::Offset<fb::ProgramPlan> ModelBuilder::plan(flatbuffers::FlatBufferBuilder& fbb,
                                                               uint32_t index) {
  ProgramSpec& p = programs[index];
  const std::vector<uint8_t> kinds = is_entry(index) ? regions : p.memories;
  std::vector<uint64_t> ends(kinds.size(), 0);
  const auto end_of = [&](uint32_t region) -> uint64_t& { return ends[region < ends.size() ? region : 0]; };
  const auto take = [&](uint64_t bytes, uint32_t region) {
    uint64_t& end = end_of(region);
    const uint64_t at = end;
    end = align_up(static_cast<size_t>(end + bytes), 64);
    return at;
  };
  std::vector<flatbuffers::Offset<fb::Placement>> placements;
  std::vector<uint64_t> offsets(p.values.size(), 0);
  for (size_t pass = 0; pass < 2; ++pass)  // aliases after what they are aliases of
    for (size_t v = 0; v < p.values.size(); ++v) {
      const PlaceSpec& s = p.values[v].place;
      if ((s.alias_of >= 0) != (pass == 1)) continue;
      int64_t bytes = 0;
      if (!checked_bytes(p.values[v].dtype, p.values[v].dims, &bytes)) bytes = 0;
      const bool placed = p.values[v].kind != fb::ValueKind::Constant &&
                          p.values[v].kind != fb::ValueKind::Prepared && !s.none;
      if (!placed) continue;
      if (s.offset >= 0) {
        offsets[v] = static_cast<uint64_t>(s.offset);
        uint64_t& end = end_of(s.region);
        end = std::max<uint64_t>(end, align_up(static_cast<size_t>(s.offset + bytes), 64));
      } else if (s.alias_of >= 0) {
        offsets[v] = offsets[static_cast<size_t>(s.alias_of)] + static_cast<uint64_t>(s.alias_offset);
      } else {
        offsets[v] = take(static_cast<uint64_t>(bytes), s.region);
      }
    }
  for (size_t v = 0; v < p.values.size(); ++v) {
    const PlaceSpec& s = p.values[v].place;
    if (p.values[v].kind == fb::ValueKind::Constant || p.values[v].kind == fb::ValueKind::Prepared || s.none)
      continue;
    int64_t bytes = 0;
    if (!checked_bytes(p.values[v].dtype, p.values[v].dims, &bytes)) bytes = 0;
    if (!s.strides.empty() && bytes > 0) {
      bytes = static_cast<int64_t>(byte_width(p.values[v].dtype));
      for (size_t d = 0; d < s.strides.size(); ++d) bytes += (p.values[v].dims[d] - 1) * s.strides[d];
    }
    const auto strides = s.strides.empty() ? 0 : fbb.CreateVector(s.strides);
    const auto whole = static_cast<int32_t>(p.steps.size());
    placements.push_back(fb::CreatePlacement(fbb, static_cast<uint32_t>(v), s.region, offsets[v],
                                             static_cast<uint64_t>(s.bytes >= 0      ? s.bytes
                                                                   : bare_placements ? 0
                                                                                     : bytes),
                                             s.first != -2 || bare_placements ? s.first : -1,
                                             s.last != -2 || bare_placements ? s.last : whole, s.alias_of,
                                             strides));
  }
  std::vector<flatbuffers::Offset<fb::StepPlan>> steps;
  for (StepSpec& s : p.steps) {
    for (const uint32_t sub : s.subprograms) {
      if (sub >= programs.size() || programs[sub].regions.empty()) continue;
      s.workspace = std::max(s.workspace, programs[sub].regions[0]);
      for (size_t r = 1; r < programs[sub].memories.size(); ++r) {
        const auto region = static_cast<uint32_t>(
            std::find(kinds.begin(), kinds.end(), programs[sub].memories[r]) - kinds.begin());
        auto at = std::find_if(s.device_workspaces.begin(), s.device_workspaces.end(),
                               [&](const WorkspaceSpec& w) { return w.exact || w.region == region; });
        if (at == s.device_workspaces.end()) at = s.device_workspaces.insert(at, {region});
        if (!at->exact) at->bytes = std::max(at->bytes, programs[sub].regions[r]);
      }
    }
    const uint64_t at = s.workspace > 0 ? take(s.workspace, s.workspace_region) : 0;
    std::vector<flatbuffers::Offset<fb::DeviceWorkspace>> there;
    for (const WorkspaceSpec& w : s.device_workspaces)
      there.push_back(fb::CreateDeviceWorkspace(
          fbb, w.region, w.offset >= 0 ? static_cast<uint64_t>(w.offset) : take(w.bytes, w.region), w.bytes));
    steps.push_back(fb::CreateStepPlan(
        fbb, fbb.CreateVector(s.candidates), s.workspace_region, at, s.workspace, s.max_threads, s.elided,
        s.in_order,
        there.empty() ? flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::DeviceWorkspace>>>()
                      : fbb.CreateVector(there)));
  }
  p.regions = ends;
  for (uint64_t& bytes : p.regions) bytes += padding;
  if (index == 0 && region_bytes >= 0) p.regions[0] = static_cast<uint64_t>(region_bytes);
  std::vector<flatbuffers::Offset<fb::Region>> region_list;
  for (size_t r = 0; r < kinds.size(); ++r)
    region_list.push_back(fb::CreateRegion(fbb, p.regions[r], kinds[r]));
  return fb::CreateProgramPlan(fbb, index, fbb.CreateVector(steps), fbb.CreateVector(placements),
                               fbb.CreateVector(region_list));
}

inline flatbuffers::Offset<fb::Profile> ModelBuilder::profile(flatbuffers::FlatBufferBuilder& fbb,
                                                              const ProfileSpec& spec) {
  std::vector<bool> parts(programs.size(), false);
  for (const uint32_t p : spec.programs.empty() ? spec.entries : spec.programs)
    spec.programs.empty() ? add_parts(p, &parts) : void(parts[p] = true);
  std::vector<flatbuffers::Offset<fb::ProgramPlan>> plans(programs.size());
  std::vector<bool> begun(programs.size(), false);
  const auto make = [&](const auto& self, size_t i) {  // bodies before their owners
    if (!parts[i] || begun[i]) return;
    begun[i] = true;
    for (const StepSpec& s : programs[i].steps)
      for (const uint32_t sub : s.subprograms)
        if (sub < programs.size()) self(self, sub);
    plans[i] = plan(fbb, static_cast<uint32_t>(i));
  };
  for (size_t i = programs.size(); i-- > 0;) make(make, i);
  std::erase_if(plans, [](const auto& p) { return p.IsNull(); });
  return fb::CreateProfile(fbb, fbb.CreateString(spec.name), fbb.CreateString(spec.target),
                           static_cast<uint8_t>(spec.architecture), fbb.CreateVectorOfStrings(backends),
                           fbb.CreateVector(spec.entries), fbb.CreateVector(plans));
}

inline AlignedBytes ModelBuilder::build() {
  flatbuffers::FlatBufferBuilder fbb;
  const auto make_steps = [&](const std::vector<StepSpec>& list) {
    std::vector<flatbuffers::Offset<fb::Step>> steps;
    for (const StepSpec& s : list)
      steps.push_back(fb::CreateStep(fbb, s.op, s.version, fbb.CreateVector(s.inputs),
                                     fbb.CreateVector(s.outputs), fbb.CreateVector(s.attrs.ints),
                                     fbb.CreateVector(s.attrs.floats), fbb.CreateVector(s.attrs.bytes),
                                     fbb.CreateVector(s.subprograms)));
    return fbb.CreateVector(steps);
  };
  const auto make_ports = [&](const std::vector<PortSpec>& list) {
    std::vector<flatbuffers::Offset<fb::Port>> ports;
    for (const PortSpec& p : list)
      ports.push_back(fb::CreatePort(fbb, p.value, fbb.CreateString(p.name),
                                     p.dims.empty() ? 0 : fbb.CreateVector(p.dims)));
    return fbb.CreateVector(ports);
  };
  std::vector<flatbuffers::Offset<fb::Program>> program_list;
  for (const ProgramSpec& p : programs) {
    std::vector<flatbuffers::Offset<fb::Value>> values;
    for (const ValueSpec& v : p.values)
      values.push_back(fb::CreateValue(
          fbb, static_cast<uint8_t>(v.dtype), fbb.CreateVector(v.dims), v.kind, v.constant, v.initial,
          v.update, v.bounded_dims.empty() ? 0 : fbb.CreateVectorOfStructs(v.bounded_dims), -1, v.scale));
    std::vector<flatbuffers::Offset<fb::StatePort>> states;
    for (const StatePortSpec& s : p.states)
      states.push_back(
          fb::CreateStatePort(fbb, s.value, fbb.CreateString(s.input), fbb.CreateString(s.output)));
    std::vector<flatbuffers::Offset<fb::Length>> lengths;
    for (const LengthSpec& l : p.lengths)
      lengths.push_back(fb::CreateLength(fbb, l.value, l.minimum, l.maximum,
                                         l.name.empty() ? 0 : fbb.CreateString(l.name)));
    program_list.push_back(fb::CreateProgram(
        fbb, fbb.CreateVector(values), make_steps(p.steps), make_steps(p.prepare), make_ports(p.inputs),
        make_ports(p.outputs),
        states.empty() ? flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::StatePort>>>()
                       : fbb.CreateVector(states),
        lengths.empty() ? flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Length>>>()
                        : fbb.CreateVector(lengths)));
  }
  std::vector<flatbuffers::Offset<fb::Profile>> profile_list;
  for (const ProfileSpec& p : profiles) profile_list.push_back(profile(fbb, p));
  std::vector<flatbuffers::Offset<fb::Constant>> constant_list;
  for (const ConstantSpec& c : constants)
    constant_list.push_back(fb::CreateConstant(fbb, static_cast<uint8_t>(c.dtype), fbb.CreateVector(c.dims),
                                               c.segment, c.offset));
  std::vector<flatbuffers::Offset<fb::Metadata>> metadata_list;
  for (const auto& [key, text] : metadata)
    metadata_list.push_back(fb::CreateMetadata(fbb, fbb.CreateString(key), fbb.CreateString(text)));
  std::vector<flatbuffers::Offset<fb::Labels>> label_list;
  for (const auto& [output, texts] : labels)
    label_list.push_back(fb::CreateLabels(fbb, fbb.CreateString(output), fbb.CreateVectorOfStrings(texts)));
  fbb.Finish(fb::CreateModel(fbb, fbb.CreateString("tests"), fbb.CreateVector(program_list),
                             fbb.CreateVector(constant_list), fbb.CreateVector(profile_list), 0,
                             metadata_list.empty() ? 0 : fbb.CreateVector(metadata_list),
                             label_list.empty() ? 0 : fbb.CreateVector(label_list)),
             fb::ModelIdentifier());

  format::Header header{};
  format::Segment segment{};
  weights.resize(align_up(weights.size(), 64) + extra_weights);
  segment.bytes = weights.size();
  segment.kind = static_cast<uint32_t>(format::SegmentKind::kWeights);
  segment.digest = format::digest_of(weights);
  header.flatbuffer_bytes = fbb.GetSize();
  header.scratch_bytes = detail::open_scratch_bytes(fb::GetModel(fbb.GetBufferPointer())) - scratch_less;
  const auto structure = std::as_bytes(std::span<const uint8_t>(fbb.GetBufferPointer(), fbb.GetSize()));
  header.flatbuffer_digest = format::digest_of(structure);
  if (!format::lay_out(header, {&segment, 1}).ok()) std::abort();
  format::seal(header, {&segment, 1});
  AlignedBytes file(header.file_bytes);
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), &segment, sizeof(segment));
  std::memcpy(file.data() + header.flatbuffer_offset, structure.data(), structure.size());
  std::memcpy(file.data() + segment.offset, weights.data(), weights.size());
  return file;
}

}  // namespace sinter::testing

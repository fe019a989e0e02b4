#include "tests/fuzz/model_file.h"

#include <cstring>

#include "runtime/model/verify.h"

namespace sinter::fuzz {
namespace {

const TableType kConstant{
    "Constant",
    {{"dtype", Type::kU8}, {"dims", Type::kI64, true}, {"segment", Type::kU32}, {"offset", Type::kU64}}};
const TableType kValue{"Value",
                       {{"dtype", Type::kU8},
                        {"dims", Type::kI64, true},
                        {"kind", Type::kU8},
                        {"constant", Type::kI32},
                        {"initial", Type::kI32},
                        {"update", Type::kI32},
                        {"bounded_dims", Type::kPair, true},
                        {"name", Type::kI32},
                        {"scale", Type::kF32},
                        {"zero_point", Type::kI32}}};
const TableType kStep{"Step",
                      {{"op", Type::kU16},
                       {"op_version", Type::kU16},
                       {"inputs", Type::kI32, true},
                       {"outputs", Type::kI32, true},
                       {"ints", Type::kI64, true},
                       {"floats", Type::kF64, true},
                       {"bytes", Type::kU8, true},
                       {"subprograms", Type::kU32, true},
                       {"name", Type::kI32}}};
const TableType kPort{"Port", {{"value", Type::kU32}, {"name", Type::kString}, {"dims", Type::kI64, true}}};
const TableType kStatePort{"StatePort",
                           {{"value", Type::kU32}, {"input", Type::kString}, {"output", Type::kString}}};
const TableType kLength{
    "Length",
    {{"value", Type::kU32}, {"minimum", Type::kI64}, {"maximum", Type::kI64}, {"name", Type::kString}}};
const TableType kProgram{"Program",
                         {{"values", Type::kTable, true, &kValue},
                          {"steps", Type::kTable, true, &kStep},
                          {"prepare", Type::kTable, true, &kStep},
                          {"inputs", Type::kTable, true, &kPort},
                          {"outputs", Type::kTable, true, &kPort},
                          {"states", Type::kTable, true, &kStatePort},
                          {"lengths", Type::kTable, true, &kLength},
                          {"value_names", Type::kU32, true},
                          {"step_names", Type::kU32, true},
                          {"step_origins", Type::kU32, true},
                          {"value_orders", Type::kPair, true}}};
const TableType kRegion{"Region", {{"bytes", Type::kU64}, {"memory_kind", Type::kU8}}};
const TableType kDeviceWorkspace{"DeviceWorkspace",
                                 {{"region", Type::kU32}, {"offset", Type::kU64}, {"bytes", Type::kU64}}};
const TableType kStepPlan{"StepPlan",
                          {{"candidates", Type::kU8, true},
                           {"workspace_region", Type::kU32},
                           {"workspace_offset", Type::kU64},
                           {"workspace_bytes", Type::kU64},
                           {"max_threads", Type::kU32},
                           {"elided", Type::kBool},
                           {"in_order", Type::kBool},
                           {"device_workspaces", Type::kTable, true, &kDeviceWorkspace}}};
const TableType kPlacement{"Placement",
                           {{"value", Type::kU32},
                            {"region", Type::kU32},
                            {"offset", Type::kU64},
                            {"bytes", Type::kU64},
                            {"first_step", Type::kI32},
                            {"last_step", Type::kI32},
                            {"alias_of", Type::kI32},
                            {"strides", Type::kI64, true}}};
const TableType kProgramPlan{"ProgramPlan",
                             {{"program", Type::kU32},
                              {"steps", Type::kTable, true, &kStepPlan},
                              {"placements", Type::kTable, true, &kPlacement},
                              {"regions", Type::kTable, true, &kRegion}}};
const TableType kProfile{"Profile",
                         {{"name", Type::kString},
                          {"target", Type::kString},
                          {"architecture", Type::kU8},
                          {"backends", Type::kString, true},
                          {"entries", Type::kU32, true},
                          {"plans", Type::kTable, true, &kProgramPlan}}};
const TableType kDebug{"Debug",
                       {{"names", Type::kString, true},
                        {"origins", Type::kString, true},
                        {"orders", Type::kString, true},
                        {"texts", Type::kU8, true}}};
const TableType kMetadata{"Metadata", {{"key", Type::kString}, {"value", Type::kString}}};
const TableType kLabels{"Labels", {{"output", Type::kString}, {"texts", Type::kString, true}}};
const TableType kModel{"Model",
                       {{"producer", Type::kString},
                        {"programs", Type::kTable, true, &kProgram},
                        {"constants", Type::kTable, true, &kConstant},
                        {"profiles", Type::kTable, true, &kProfile},
                        {"debug", Type::kTable, false, &kDebug},
                        {"metadata", Type::kTable, true, &kMetadata},
                        {"labels", Type::kTable, true, &kLabels}}};

uint64_t read(const uint8_t* at, size_t width) {
  uint64_t v = 0;
  std::memcpy(&v, at, width);
  return v;
}

int64_t extended(uint64_t bits, Type t) {
  return t == Type::kI32 ? static_cast<int32_t>(static_cast<uint32_t>(bits)) : static_cast<int64_t>(bits);
}
size_t alignment_of(Type t) { return t == Type::kPair ? 4 : width_of(t); }

// The buffer has passed FlatBuffers' verifier: offsets need no checks.
const uint8_t* target(const uint8_t* at) { return at + read(at, 4); }

Table parse_table(const uint8_t* at, const TableType* type) {
  Table table(type);
  const uint8_t* vtable = at - static_cast<int32_t>(read(at, 4));
  const size_t known = read(vtable, 2);
  for (size_t i = 0; i < type->fields.size(); ++i) {
    const FieldType& f = type->fields[i];
    if (4 + 2 * i + 2 > known) break;
    const size_t offset = read(vtable + 4 + 2 * i, 2);
    if (offset == 0) continue;
    Field& field = table.fields[i];
    field.present = true;
    const uint8_t* p = at + offset;
    const auto item = [&](const uint8_t* q) {
      if (f.type == Type::kString) {
        const uint8_t* s = target(q);
        field.texts.emplace_back(reinterpret_cast<const char*>(s + 4), read(s, 4));
      } else if (f.type == Type::kTable) {
        field.tables.push_back(parse_table(target(q), f.table));
      } else {
        field.numbers.push_back(read(q, width_of(f.type)));
      }
    };
    if (!f.list) {
      item(p);
      continue;
    }
    const uint8_t* list = target(p);
    const size_t n = read(list, 4);
    for (size_t k = 0; k < n; ++k) item(list + 4 + k * width_of(f.type));
  }
  return table;
}

using flatbuffers::FlatBufferBuilder;

uint32_t write_table(FlatBufferBuilder& b, const Table& table) {
  // Children first.
  std::vector<uint32_t> offsets(table.fields.size());
  for (size_t i = 0; i < table.fields.size(); ++i) {
    const FieldType& type = table.type->fields[i];
    const Field& f = table.fields[i];
    if (!f.present) continue;
    const bool points = type.type == Type::kString || type.type == Type::kTable;
    if (!points && !type.list) continue;
    std::vector<flatbuffers::Offset<void>> children;
    for (const std::string& s : f.texts) children.emplace_back(b.CreateString(s).o);
    for (const Table& t : f.tables) children.emplace_back(write_table(b, t));
    if (!type.list) {
      offsets[i] = children.empty() ? 0 : children[0].o;
    } else if (points) {
      offsets[i] = b.CreateVector(children).o;
    } else {
      const size_t width = width_of(type.type);
      b.StartVector(f.numbers.size() * width / alignment_of(type.type), alignment_of(type.type),
                    alignment_of(type.type));
      for (size_t k = f.numbers.size(); k-- > 0;)
        b.PushBytes(reinterpret_cast<const uint8_t*>(&f.numbers[k]), width);
      offsets[i] = b.EndVector(f.numbers.size());
    }
  }
  b.ForceDefaults(true);
  const auto start = b.StartTable();
  // Large fields first, as the generated code does; any order is well-formed.
  for (size_t i = 0; i < table.fields.size(); ++i) {
    const FieldType& type = table.type->fields[i];
    const Field& f = table.fields[i];
    if (!f.present) continue;
    const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * i);
    if (type.list || type.type == Type::kString || type.type == Type::kTable) {
      if (offsets[i] != 0) b.AddOffset(slot, flatbuffers::Offset<void>(offsets[i]));
      continue;
    }
    const uint64_t bits = f.numbers.empty() ? 0 : f.numbers[0];
    switch (width_of(type.type)) {
      case 1:
        b.AddElement<uint8_t>(slot, static_cast<uint8_t>(bits));
        break;
      case 2:
        b.AddElement<uint16_t>(slot, static_cast<uint16_t>(bits));
        break;
      case 4:
        b.AddElement<uint32_t>(slot, static_cast<uint32_t>(bits));
        break;
      default:
        b.AddElement<uint64_t>(slot, bits);
    }
  }
  return b.EndTable(start);
}

}  // namespace

size_t width_of(Type type) {
  constexpr uint8_t kWidths[] = {1, 1, 2, 4, 4, 8, 8, 4, 8, 8, 4, 4};
  return kWidths[static_cast<size_t>(type)];
}

const TableType* model_type() { return &kModel; }

size_t TableType::id(const char* field) const {
  for (size_t i = 0; i < fields.size(); ++i)
    if (std::strcmp(fields[i].name, field) == 0) return i;
  broken("the fuzzer's schema lacks", field);
}

int64_t Table::get(const char* name, int64_t absent) const {
  const size_t id = type->id(name);
  const Field& f = fields[id];
  return f.present && !f.numbers.empty() ? extended(f.numbers[0], type->fields[id].type) : absent;
}
void Table::set(const char* name, int64_t value) {
  Field& f = (*this)[name];
  f.present = true;
  f.numbers = {static_cast<uint64_t>(value)};
}
std::vector<int64_t> Table::list(const char* name) const {
  const size_t id = type->id(name);
  std::vector<int64_t> out;
  for (const uint64_t n : fields[id].numbers) out.push_back(extended(n, type->fields[id].type));
  return out;
}
void Table::set_list(const char* name, const std::vector<int64_t>& items) {
  Field& f = (*this)[name];
  f.present = true;
  f.numbers.assign(items.begin(), items.end());
}

std::optional<ModelFile> ModelFile::parse(View file) {
  if (file.size() < sizeof(format::Header)) return std::nullopt;
  format::Header h;
  std::memcpy(&h, file.data(), sizeof(h));
  if (h.segment_count > 64 || h.flatbuffer_offset > file.size() || h.flatbuffer_offset % 8 != 0 ||
      h.flatbuffer_bytes > file.size() - h.flatbuffer_offset || h.flatbuffer_bytes < 16 ||
      sizeof(h) + h.segment_count * sizeof(format::Segment) > file.size())
    return std::nullopt;
  Blob copy(file.begin() + static_cast<ptrdiff_t>(h.flatbuffer_offset),
            file.begin() + static_cast<ptrdiff_t>(h.flatbuffer_offset + h.flatbuffer_bytes));
  flatbuffers::Verifier verifier(copy.data(), copy.size(), 16,
                                 static_cast<flatbuffers::uoffset_t>(copy.size() / 4));
  if (!fb::VerifyModelBuffer(verifier)) return std::nullopt;
  // A list that several tables share would be copied for each here.
  if (copy.size() > (1 << 20)) return std::nullopt;
  ModelFile model;
  model.root = parse_table(target(copy.data()), &kModel);
  for (uint32_t i = 0; i < h.segment_count; ++i) {
    format::Segment s;
    std::memcpy(&s, file.data() + sizeof(h) + i * sizeof(s), sizeof(s));
    if (s.offset > file.size() || s.bytes > file.size() - s.offset) return std::nullopt;
    model.segments.push_back({s.kind, Blob(file.begin() + static_cast<ptrdiff_t>(s.offset),
                                           file.begin() + static_cast<ptrdiff_t>(s.offset + s.bytes))});
  }
  return model;
}

Blob ModelFile::write() const {
  FlatBufferBuilder b;
  b.Finish(flatbuffers::Offset<fb::Model>(write_table(b, root)), fb::ModelIdentifier());
  const View structure(b.GetBufferPointer(), b.GetSize());
  format::Header h{};
  h.flatbuffer_bytes = structure.size();
  std::vector<format::Segment> table(segments.size());
  for (size_t i = 0; i < table.size(); ++i)
    table[i].bytes = segments[i].bytes.size(), table[i].kind = segments[i].kind;
  if (!format::lay_out(h, table).ok()) return {};
  flatbuffers::Verifier verifier(structure.data(), structure.size(), 16,
                                 static_cast<flatbuffers::uoffset_t>(structure.size() / 4));
  // The size is computed from lists that have to be there.
  if (fb::VerifyModelBuffer(verifier)) {
    const fb::Model* m = fb::GetModel(structure.data());
    if (m->programs() != nullptr && m->profiles() != nullptr && m->constants() != nullptr)
      h.scratch_bytes = detail::open_scratch_bytes(m);
  }
  Blob file(h.file_bytes);
  std::memcpy(file.data() + h.flatbuffer_offset, structure.data(), structure.size());
  for (size_t i = 0; i < table.size(); ++i)
    if (!segments[i].bytes.empty())
      std::memcpy(file.data() + table[i].offset, segments[i].bytes.data(), segments[i].bytes.size());
  std::memcpy(file.data(), &h, sizeof(h));
  if (!table.empty()) std::memcpy(file.data() + sizeof(h), table.data(), table.size() * sizeof(table[0]));
  reseal(&file, true);
  return file;
}

void reseal(Blob* file, bool all) {
  if (file->size() < sizeof(format::Header)) return;
  format::Header h;
  std::memcpy(&h, file->data(), sizeof(h));
  if (h.segment_count > 1024 || sizeof(h) + h.segment_count * sizeof(format::Segment) > file->size()) return;
  std::vector<format::Segment> table(h.segment_count);
  if (!table.empty()) std::memcpy(table.data(), file->data() + sizeof(h), table.size() * sizeof(table[0]));
  const auto digest = [&](uint64_t offset, uint64_t bytes, format::Digest* to) {
    if (offset <= file->size() && bytes <= file->size() - offset)
      *to = format::digest_of(std::as_bytes(View(file->data() + offset, bytes)));
  };
  if (all) {
    digest(h.flatbuffer_offset, h.flatbuffer_bytes, &h.flatbuffer_digest);
    for (format::Segment& s : table) digest(s.offset, s.bytes, &s.digest);
  }
  format::seal(h, table);
  std::memcpy(file->data(), &h, sizeof(h));
  if (!table.empty()) std::memcpy(file->data() + sizeof(h), table.data(), table.size() * sizeof(table[0]));
}

}  // namespace sinter::fuzz

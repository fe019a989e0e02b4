// A .sinter file taken apart into a tree of the schema's tables, and put together again around other content.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/format.h"
#include "tests/fuzz/targets.h"

namespace sinter::fuzz {

enum class Type : uint8_t { kU8, kBool, kU16, kI32, kU32, kI64, kU64, kF32, kF64, kPair, kString, kTable };
size_t width_of(Type type);

struct TableType;
struct FieldType {
  const char* name;
  Type type;
  bool list = false;
  const TableType* table = nullptr;
};
// Fields in the order of their ids (schemas/model.fbs).
struct TableType {
  const char* name;
  std::vector<FieldType> fields;
  size_t id(const char* field) const;
};

struct Table;
// Scalars and their lists are numbers by their bits; strings are text.
struct Field {
  bool present = false;
  std::vector<uint64_t> numbers;
  std::vector<std::string> texts;
  std::vector<Table> tables;
};
struct Table {
  const TableType* type = nullptr;
  std::vector<Field> fields;
  explicit Table(const TableType* t = nullptr) : type(t), fields(t != nullptr ? t->fields.size() : 0) {}
  Field& operator[](const char* name) { return fields[type->id(name)]; }
  // A scalar, or the marker of an absent one.
  int64_t get(const char* name, int64_t absent = 0) const;
  void set(const char* name, int64_t value);
  // Lists as signed numbers.
  std::vector<int64_t> list(const char* name) const;
  void set_list(const char* name, const std::vector<int64_t>& items);
  std::vector<Table>& tables(const char* name) { return (*this)[name].tables; }
};

const TableType* model_type();

struct ModelFile {
  Table root{model_type()};
  struct Part {
    uint32_t kind = 0;
    Blob bytes;
  };
  std::vector<Part> segments;

  // nullopt: not well-formed.
  static std::optional<ModelFile> parse(View file);
  // With right digests and the scratch that the structure needs.
  Blob write() const;
};

// Sets digests of the header (and, with `all`, of the parts) to what the bytes are, as far as the file has a
// header at all.
void reseal(Blob* file, bool all);

// Makes the file's types, shapes, constants and memory plan follow from its inputs and attributes again,
// where these are possible at all: what a mutation has changed then reaches the kernels. Shapes that grow too
// large stay as they are.
void repair(ModelFile* model);

Blob mutate_model(View bytes, size_t most, Random& random, const ByteMutator& by_bytes);

}  // namespace sinter::fuzz

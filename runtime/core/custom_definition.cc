#include "runtime/core/custom_definition.h"

#include "runtime/core/checked.h"
#include "runtime/core/dtype.h"
#include "runtime/core/tensor_view.h"

namespace sinter {
namespace {

constexpr Status kDamaged = corrupt("the definition of a custom operator is damaged");

// Takes parts from the front of a definition.
class Reader {
 public:
  explicit Reader(const AttrBytes& definition) : at_(definition.data), left_(definition.size) {}

  // Returns null if the definition is shorter, or if bytes up to the next multiple of 8 are not zero.
  const std::byte* take(size_t bytes) {
    if (bytes > left_ || align_up(bytes, kDefinitionAlignment) > left_) return nullptr;
    const std::byte* part = at_;
    const size_t whole = align_up(bytes, kDefinitionAlignment);
    for (size_t i = bytes; i < whole; ++i)
      if (part[i] != std::byte{0}) return nullptr;
    at_ += whole, left_ -= whole;
    return part;
  }
  template <class Head>
  const Head* head() {
    return reinterpret_cast<const Head*>(take(sizeof(Head)));
  }
  // Returns the name of `bytes` bytes with the zero byte that ends it, or null if it is none or empty.
  const char* name(uint32_t bytes) {
    if (bytes < 2 || bytes > kMostNameBytes) return nullptr;
    const auto* text = reinterpret_cast<const char*>(take(bytes));
    return text != nullptr && std::memchr(text, 0, bytes) == text + bytes - 1 ? text : nullptr;
  }
  // Returns false if no attribute follows.
  bool attribute(sinter_attribute* out, uint32_t* data_bytes) {
    const auto* head = this->head<AttributeHead>();
    if (head == nullptr) return false;
    out->name = name(head->name_bytes);
    out->kind = static_cast<int32_t>(head->kind);
    out->count = head->count;
    out->type = static_cast<int32_t>(head->type);
    out->rank = static_cast<int32_t>(head->rank);
    if (out->name == nullptr || head->rank > kMaxRank) return false;
    out->dims = reinterpret_cast<const int64_t*>(take(head->rank * sizeof(int64_t)));
    out->data = take(head->data_bytes);
    *data_bytes = head->data_bytes;
    return out->dims != nullptr && out->data != nullptr;
  }
  bool empty() const { return left_ == 0; }

 private:
  const std::byte* at_;
  size_t left_;
};

bool is_tensor(const sinter_attribute& a, uint32_t data_bytes) {
  if (a.type < SINTER_FLOAT32 || a.type > SINTER_BOOL) return false;
  uint64_t count = 1, bytes = 0;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a.dims[i] < 0 || !checked_mul(count, static_cast<uint64_t>(a.dims[i]), &count)) return false;
  return checked_mul<uint64_t>(count, byte_width(static_cast<DType>(a.type)), &bytes) && count == a.count &&
         bytes == data_bytes;
}

// Returns whether `bytes` hold `count` texts, one behind the other.
bool are_texts(const char* data, uint64_t bytes, uint64_t count) {
  if (bytes > 0 && data[bytes - 1] != 0) return false;
  uint64_t ends = 0;
  for (uint64_t i = 0; i < bytes; ++i) ends += data[i] == 0;
  return ends == count;
}

bool is_attribute(const sinter_attribute& a, uint32_t data_bytes) {
  const uint64_t count = a.count, bytes = data_bytes;
  const auto* data = static_cast<const char*>(a.data);
  if (a.kind == SINTER_ATTRIBUTE_TENSOR) return is_tensor(a, data_bytes);
  if (a.type != SINTER_NONE || a.rank != 0) return false;
  switch (a.kind) {
    case SINTER_ATTRIBUTE_INT:
      return count == 1 && bytes == sizeof(int64_t);
    case SINTER_ATTRIBUTE_FLOAT:
      return count == 1 && bytes == sizeof(float);
    case SINTER_ATTRIBUTE_TEXT:
      return bytes == count + 1 && are_texts(data, bytes, 1);
    case SINTER_ATTRIBUTE_BYTES:
      return bytes == count;
    case SINTER_ATTRIBUTE_INTS:
      return bytes == count * sizeof(int64_t);
    case SINTER_ATTRIBUTE_FLOATS:
      return bytes == count * sizeof(float);
    case SINTER_ATTRIBUTE_TEXTS:
      return are_texts(data, bytes, count);
    default:
      return false;
  }
}

// The head and the texts of a well-formed definition. The reader is then at its attributes.
struct Names {
  const DefinitionHead* head;
  const char *domain, *name;

  explicit Names(Reader& reader)
      : head(reader.head<DefinitionHead>()),
        domain(head != nullptr ? reader.name(head->domain_bytes) : nullptr),
        name(domain != nullptr ? reader.name(head->name_bytes) : nullptr) {}
};

bool has(const AttrBytes& definition, uint32_t before, const char* name) {
  Reader reader(definition);
  Names{reader};
  for (uint32_t i = 0; i < before; ++i) {
    sinter_attribute a;
    uint32_t bytes = 0;
    if (reader.attribute(&a, &bytes) && std::strcmp(a.name, name) == 0) return true;
  }
  return false;
}

}  // namespace

Status check_definition(const AttrBytes& definition) {
  SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(definition.data) % kDefinitionAlignment == 0, kDamaged);
  Reader reader(definition);
  const Names names(reader);
  SINTER_RETURN_UNLESS(names.name != nullptr && names.head->layout == kDefinitionLayout &&
                           names.head->version >= 1 && names.head->zero == 0 &&
                           names.head->attributes <= kMostCustomAttributes,
                       kDamaged);
  for (uint32_t i = 0; i < names.head->attributes; ++i) {
    sinter_attribute a;
    uint32_t bytes = 0;
    SINTER_RETURN_UNLESS(
        reader.attribute(&a, &bytes) && is_attribute(a, bytes) && !has(definition, i, a.name), kDamaged);
  }
  SINTER_RETURN_UNLESS(reader.empty(), kDamaged);
  return ok_status();
}

const char* custom_domain(const AttrBytes& definition) {
  Reader reader(definition);
  return Names(reader).domain;
}
const char* custom_name(const AttrBytes& definition) {
  Reader reader(definition);
  return Names(reader).name;
}
uint32_t custom_version(const AttrBytes& definition) {
  Reader reader(definition);
  return Names(reader).head->version;
}

int32_t find_custom_attribute(const void* definition, const char* name, sinter_attribute* found) {
  Reader reader(*static_cast<const AttrBytes*>(definition));
  const Names names(reader);
  for (uint32_t i = 0; i < names.head->attributes; ++i) {
    uint32_t bytes = 0;
    if (reader.attribute(found, &bytes) && std::strcmp(found->name, name) == 0) return 1;
  }
  *found = {};
  return 0;
}

Status check_custom_attributes(const AttrBytes& definition, const sinter_custom_op& op) {
  Reader reader(definition);
  const Names names(reader);
  for (uint32_t i = 0; i < names.head->attributes; ++i) {
    sinter_attribute a;
    uint32_t bytes = 0;
    (void)reader.attribute(&a, &bytes);
    const sinter_attribute_rule* rule = nullptr;
    for (uint32_t r = 0; r < op.attribute_count && rule == nullptr; ++r)
      if (std::strcmp(op.attributes[r].name, a.name) == 0) rule = op.attributes + r;
    SINTER_RETURN_UNLESS(rule != nullptr, unsupported("attribute '%s' is not an attribute of %t",
                                                      name_of(a.name), name_of(op.name)));
    SINTER_RETURN_UNLESS(rule->kind == a.kind, unsupported("attribute '%s' is not of the kind that %t takes",
                                                           name_of(a.name), name_of(op.name)));
  }
  for (uint32_t r = 0; r < op.attribute_count; ++r) {
    sinter_attribute a;
    SINTER_RETURN_UNLESS(
        op.attributes[r].required == 0 || find_custom_attribute(&definition, op.attributes[r].name, &a) != 0,
        unsupported("attribute '%s' is missing, which %t requires", name_of(op.attributes[r].name),
                    name_of(op.name)));
  }
  return ok_status();
}

}  // namespace sinter

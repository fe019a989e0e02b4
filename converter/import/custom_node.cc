#include "converter/import/custom_node.h"

#include <cstring>

#include "converter/import/lower.h"
#include "runtime/core/custom_definition.h"

namespace sinter::convert {
namespace {

// Appends the parts of a definition (runtime/core/custom_definition.h).
struct DefinitionWriter {
  std::vector<std::byte> bytes;

  void part(const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
    bytes.resize(align_up(bytes.size(), kDefinitionAlignment));
  }
  void text(const std::string& s) { part(s.c_str(), s.size() + 1); }
};

struct Encoded {
  AttributeHead head = {};
  Dims dims;
  std::vector<std::byte> data;

  void set(const void* from, size_t size, size_t count) {
    const auto* bytes = static_cast<const std::byte*>(from);
    data.assign(bytes, bytes + size);
    head.count = static_cast<uint32_t>(count);
  }
};

bool holds_zero(const std::string& s) { return s.find('\0') != std::string::npos; }

int32_t stated_kind(const sinter_custom_op& op, const std::string& name) {
  for (uint32_t i = 0; i < op.attribute_count; ++i)
    if (name == op.attributes[i].name) return op.attributes[i].kind;
  return 0;
}

bool encode_tensor(NodeLowering& n, const ImportedAttribute& a, Encoded* out) {
  const ImportedTensor& tensor = a.tensors[0];
  if (!tensor.data || byte_width(tensor.data->dtype()) == 0 || tensor.data->dtype() > DType::kBool ||
      tensor.data->dims().size() > kMaxRank)
    return n.refuse("attribute '{}' is a tensor of {}, which custom operators do not take", a.name,
                    onnx_type_name(tensor.onnx_type));
  const LoadedBytes loaded = tensor.data->load();
  out->dims = tensor.data->dims();
  out->head.kind = SINTER_ATTRIBUTE_TENSOR;
  out->head.type = static_cast<uint32_t>(tensor.data->dtype());
  out->head.rank = static_cast<uint32_t>(out->dims.size());
  out->set(loaded.bytes.data(), loaded.bytes.size(), static_cast<size_t>(tensor.data->size()));
  return true;
}

bool encode_texts(NodeLowering& n, const ImportedAttribute& a, Encoded* out) {
  std::string all;
  for (const std::string& s : a.strings) {
    if (holds_zero(s)) return n.refuse("attribute '{}' has text with a zero byte", a.name);
    all.append(s.c_str(), s.size() + 1);
  }
  out->head.kind = SINTER_ATTRIBUTE_TEXTS;
  out->set(all.data(), all.size(), a.strings.size());
  return true;
}

bool encode(NodeLowering& n, const sinter_custom_op& op, const ImportedAttribute& a, Encoded* out) {
  using Kind = ImportedAttribute::Kind;
  switch (a.kind) {
    case Kind::kInt:
      out->head.kind = SINTER_ATTRIBUTE_INT;
      out->set(&a.i, sizeof a.i, 1);
      return true;
    case Kind::kFloat:
      out->head.kind = SINTER_ATTRIBUTE_FLOAT;
      out->set(&a.f, sizeof a.f, 1);
      return true;
    case Kind::kString:
      if (stated_kind(op, a.name) == SINTER_ATTRIBUTE_BYTES) {
        out->head.kind = SINTER_ATTRIBUTE_BYTES;
        out->set(a.s.data(), a.s.size(), a.s.size());
        return true;
      }
      if (holds_zero(a.s)) return n.refuse("attribute '{}' is text with a zero byte", a.name);
      out->head.kind = SINTER_ATTRIBUTE_TEXT;
      out->set(a.s.c_str(), a.s.size() + 1, a.s.size());
      return true;
    case Kind::kInts:
      out->head.kind = SINTER_ATTRIBUTE_INTS;
      out->set(a.ints.data(), a.ints.size() * sizeof(int64_t), a.ints.size());
      return true;
    case Kind::kFloats:
      out->head.kind = SINTER_ATTRIBUTE_FLOATS;
      out->set(a.floats.data(), a.floats.size() * sizeof(float), a.floats.size());
      return true;
    case Kind::kStrings:
      return encode_texts(n, a, out);
    case Kind::kTensor:
      return encode_tensor(n, a, out);
    default:
      return n.refuse("attribute '{}' is of kind {}, which custom operators do not take", a.name,
                      kind_name(a.kind));
  }
}

bool too_long(const std::string& name) {
  return name.empty() || name.size() >= kMostNameBytes || holds_zero(name);
}

const sinter_custom_op* operator_of(const GraphLowering& lowering, const ImportedNode& node,
                                    uint32_t* newer) {
  const auto& given = lowering.options().custom_ops;
  *newer = 0;
  return given ? given->find(node.domain, node.op_type, node.opset, newer) : nullptr;
}

bool lower_custom(NodeLowering& n) {
  uint32_t newer = 0;
  const sinter_custom_op& op = *operator_of(n.parent(), n.node(), &newer);
  const std::vector<ImportedAttribute>& attributes = n.node().attributes;
  if (attributes.size() > kMostCustomAttributes)
    return n.refuse("it has {} attributes; a custom operator has at most {}", attributes.size(),
                    kMostCustomAttributes);
  const std::string domain = op.domain, name = op.name;
  DefinitionWriter w;
  const DefinitionHead head{kDefinitionLayout,
                            op.since_version,
                            static_cast<uint32_t>(attributes.size()),
                            static_cast<uint32_t>(domain.size() + 1),
                            static_cast<uint32_t>(name.size() + 1),
                            0};
  w.part(&head, sizeof head);
  w.text(domain), w.text(name);
  for (const ImportedAttribute& a : attributes) {
    Encoded encoded;
    if (too_long(a.name))
      return n.refuse("an attribute's name has no byte, a zero byte, or more than 255 bytes");
    n.ignore_attr(a.name);  // the operator states which it takes: check_custom_attributes()
    if (!encode(n, op, a, &encoded)) return false;
    if (encoded.data.size() > size_t{1} << 30)
      return n.refuse("attribute '{}' has more than 2^30 bytes", a.name);
    encoded.head.name_bytes = static_cast<uint32_t>(a.name.size() + 1);
    encoded.head.data_bytes = static_cast<uint32_t>(encoded.data.size());
    w.part(&encoded.head, sizeof encoded.head);
    w.text(a.name);
    w.part(encoded.dims.data(), encoded.dims.size() * sizeof(int64_t));
    w.part(encoded.data.data(), encoded.data.size());
  }
  if (w.bytes.size() > size_t{1} << 30) return n.refuse("its attributes have more than 2^30 bytes");
  CustomAttrs attrs;
  attrs.definition = n.parent().options().custom_ops->keep(w.bytes);
  attrs.op = &op;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < n.input_count(); ++i) inputs.push_back(n.input(i));
  std::vector<bool> wanted;
  for (size_t i = 0; i < n.output_count(); ++i) wanted.push_back(n.wants_output(i));
  const std::vector<ValueId> results = n.emit_many(attrs, std::move(inputs), wanted);
  for (size_t i = 0; i < results.size(); ++i) {
    if (wanted[i])
      n.output(i, results[i]);
    else
      n.absent_output(i);
  }
  return !n.refused();
}

constexpr OnnxOperator kCustom = {"Custom", 1, lower_custom, "", kNoInput};

}  // namespace

const OnnxOperator* find_custom(const GraphLowering& lowering, const ImportedNode& node) {
  uint32_t newer = 0;
  return operator_of(lowering, node, &newer) != nullptr ? &kCustom : nullptr;
}

std::string custom_advice(const GraphLowering& lowering, const ImportedNode& node) {
  uint32_t newer = 0;
  operator_of(lowering, node, &newer);
  if (newer != 0)
    return fmt::format(
        "the operator that --custom-ops gives is of version {} and newer, and the model imports version "
        "{} of '{}': give an operator with a since_version up to that",
        newer, node.opset, node.domain);
  return "if it is an operator of your own, give the library that has it with --custom-ops "
         "(docs/application.md)";
}

}  // namespace sinter::convert

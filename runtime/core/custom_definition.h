// The definition of a Custom step: its operator and the attributes of its node, in one block of bytes.
//
// Numbers are little-endian. A head of six uint32 (layout, version, attributes, bytes of the domain, bytes of
// the name, zero), then both texts; for each attribute six uint32 (kind, bytes of its name, count, bytes of
// its data, type, rank), then its name, its dims (int64) and its data. Texts end with a zero byte, which
// their bytes include. Each part begins at a multiple of 8; the bytes between are zero. The block is aligned
// to 8.
#pragma once

#include "runtime/core/op.h"
#include "sinter/custom_op.h"

namespace sinter {

inline constexpr uint32_t kDefinitionLayout = 1;
inline constexpr size_t kDefinitionAlignment = 8;
inline constexpr uint32_t kMostCustomAttributes = 64;
inline constexpr uint32_t kMostNameBytes = 256;  // of a domain, an operator, an attribute; with the end

struct DefinitionHead {
  uint32_t layout, version, attributes, domain_bytes, name_bytes, zero;
};
struct AttributeHead {
  uint32_t kind, name_bytes, count, data_bytes, type, rank;
};

// Returns kCorrupt unless the block is well formed. Everything below requires that.
Status check_definition(const AttrBytes& definition);

const char* custom_domain(const AttrBytes& definition);
const char* custom_name(const AttrBytes& definition);
// Returns sinter_custom_op::since_version of the operator that the model was converted with.
uint32_t custom_version(const AttrBytes& definition);

// Implements sinter_custom_call::find_attribute; `definition` is an AttrBytes.
int32_t find_custom_attribute(const void* definition, const char* name, sinter_attribute* found);

// Returns kUnsupported unless the attributes are those that the operator takes.
Status check_custom_attributes(const AttrBytes& definition, const sinter_custom_op& op);

}  // namespace sinter

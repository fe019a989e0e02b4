// The operations and element types that this build computes: all, or those that CMake's SINTER_OPERATIONS and
// SINTER_ELEMENT_TYPES list. Code for the others is not compiled, and a model that uses one is refused when
// it is opened. Only the runtime, its reference kernels and the table of the simd kernels are compiled with
// the lists.
#pragma once

#include <string_view>

#include "runtime/core/dtype_names.h"
#include "runtime/core/op.h"

namespace sinter {

// `list`: words separated by single spaces.
consteval bool lists_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = list.find(' ');
    if (list.substr(0, end) == word) return true;
    list = end == std::string_view::npos ? std::string_view{} : list.substr(end + 1);
  }
  return false;
}

#ifdef SINTER_OPERATIONS
constexpr bool is_built(Op op) {
  switch (op) {
#define SINTER_OP(name, ...) \
  case Op::k##name:          \
    return lists_word(SINTER_OPERATIONS, #name);
#include "schemas/ops.def"
#undef SINTER_OP
  }
  return false;
}
#else
constexpr bool is_built(Op) { return true; }
#endif

// Returns bit 0 for kNone, and bit t for the type with the number t if the list has it.
consteval uint32_t listed_types(std::string_view list) {
  uint32_t types = 1;
  for (uint32_t t = 1; t < static_cast<uint32_t>(DType::kCount); ++t)
    if (lists_word(list, kDTypeNames[t])) types |= uint32_t{1} << t;
  return types;
}

// Bit t stands for the type with the number t.
inline constexpr uint32_t kBuiltTypes = [] {
#ifdef SINTER_ELEMENT_TYPES
  return listed_types(SINTER_ELEMENT_TYPES);
#else
  return (uint32_t{1} << static_cast<uint32_t>(DType::kCount)) - 1;
#endif
}();
constexpr bool is_built(DType t) {
  return t < DType::kCount && (kBuiltTypes >> static_cast<uint32_t>(t) & 1) != 0;
}

// Returns whether a type of this build has elements of this number of whole bytes.
consteval bool is_built_width(size_t bytes) {
  for (uint32_t t = 1; t < static_cast<uint32_t>(DType::kCount); ++t)
    if (is_built(static_cast<DType>(t)) && byte_width(static_cast<DType>(t)) == bytes) return true;
  return false;
}

// A sealed build opens trusted files alone: it checks digests and leaves out the verifier (docs/security.md).
#ifdef SINTER_SEALED
inline constexpr bool kSealed = true;
#else
inline constexpr bool kSealed = false;
#endif

// True if a model may use what the build does not have.
#if defined(SINTER_OPERATIONS) || defined(SINTER_ELEMENT_TYPES)
inline constexpr bool kLean = true;
#else
inline constexpr bool kLean = false;
#endif

inline constexpr bool kControlFlow = is_built(Op::kIf) || is_built(Op::kLoop);

}  // namespace sinter

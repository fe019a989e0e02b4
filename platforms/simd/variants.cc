#include <cstring>

#include "platforms/simd/simd_kernels.h"
#include "platforms/simd/variant.h"
#include "runtime/core/built.h"

namespace sinter::simd {
namespace {

// The linker drops the variants of operations that are left out, because nothing else refers to them.
constexpr VariantRow kRows[] = {
#define SINTER_SIMD_VARIANT(op, variant) {Op::k##op, #variant, is_built(Op::k##op) ? &variant : nullptr},
#include "platforms/simd/variants.def"
#undef SINTER_SIMD_VARIANT
};

const char* forced = nullptr;

}  // namespace

std::span<const VariantRow> variant_rows() { return kRows; }

const VariantRow* choose_variant(const OpCall& call, int threads, StepNeeds* needs, size_t* planned) {
  const VariantRow* chosen = nullptr;
  if (call.inputs.size() < 2 || !call.in(1).constant) return nullptr;
  size_t workspace = 0, bound = 0;
  for (const VariantRow& row : kRows) {
    if (row.op != call.op || row.variant == nullptr) continue;
    VariantNeeds own;
    const Fit fit = row.variant->takes(call, threads, &own);
    if (fit == Fit::kNever || own.packing.bytes == 0) continue;
    workspace = std::max(workspace, own.workspace);
    bound = std::max({bound, own.planned, own.workspace});
    const bool is_forced = forced != nullptr && std::strcmp(row.name, forced) == 0;
    if (is_forced || (chosen == nullptr && fit >= Fit::kHere)) {
      chosen = &row;
      needs->packing = own.packing;
      needs->packing.parameters[0] = 1 + (&row - kRows);
    }
    if (is_forced || (fit == Fit::kEverywhere && forced == nullptr)) break;
  }
  if (chosen == nullptr) return needs->packing = {}, nullptr;
  needs->packing.parameters[kPackingParameters - 1] = simd_instruction_set();
  needs->packed = chosen->variant->keeps_weights ? 0 : needs->packing.inputs;
  needs->prepared = sizeof(VariantStep) + chosen->variant->plan_bytes;
  needs->workspace = workspace;
  *planned = bound;
  return chosen;
}

}  // namespace sinter::simd

namespace sinter {

bool force_simd_variant(const char* name) {
  if (name != nullptr &&
      std::none_of(std::begin(simd::kRows), std::end(simd::kRows),
                   [name](const simd::VariantRow& row) { return std::strcmp(row.name, name) == 0; }))
    return false;
  simd::forced = name;
  return true;
}

}  // namespace sinter

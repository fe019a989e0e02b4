#include "platforms/simd/simd_backend.h"

#include "platforms/simd/float/bfloat16.h"
#include "platforms/simd/float/fused.h"
#include "platforms/simd/simd_kernels.h"
#include "platforms/simd/variant.h"
#include "source_digest.h"

namespace sinter {
namespace {

constexpr Status kDisagree = error(Code::kInternal, "measuring and preparing disagree");

const Kernel* kernel_of(const OpCall& call) {
  const int row = op_index(call.op);
  return row >= 0 ? simd_kernels()[static_cast<size_t>(row)] : nullptr;
}

Status run_kernel(void* state, const OpCall& call, RunContext& context) {
  return static_cast<const Kernel*>(state)->run(call, context);
}
Status run_kernel_widened(void* state, const OpCall& call, RunContext& context) {
  return simd::run_halves(*static_cast<const Kernel*>(state), call, context);
}

Status run_variant(void* state, const OpCall& call, RunContext& context) {
  const auto& step = *static_cast<const simd::VariantStep*>(state);
  return step.row->variant->run(step, call, context);
}
Status prepare_variant(const simd::VariantRow& row, const StepNeeds& needs, const OpCall& call,
                       const Preparation& with, PreparedStep* step) {
  SINTER_RETURN_UNLESS(
      with.packed.size() == needs.packing.bytes,
      error(Code::kInternal, "%a bytes of packed weights are needed, not %b",
            static_cast<int64_t>(needs.packing.bytes), static_cast<int64_t>(with.packed.size())));
  void* at = with.prepared.allocate(needs.prepared, alignof(simd::VariantStep));
  SINTER_RETURN_UNLESS(at != nullptr, kDisagree);
  auto* prepared = new (at) simd::VariantStep{&row, const_cast<std::byte*>(with.packed.data())};
  const simd::Variant& variant = *row.variant;
  SINTER_RETURN_UNLESS(variant.plan == nullptr || variant.plan(call, with, prepared->plan_memory()),
                       kDisagree);
  *step = {run_variant, prepared};
  return ok_status();
}

// An element-wise step, which may be computed with others.
struct ElementwiseStep {
  const Kernel* kernel = nullptr;
  simd::Piece piece;
};
Status run_elementwise(void* state, const OpCall& call, RunContext& context) {
  const auto& step = *static_cast<ElementwiseStep*>(state);
  if (!context.fused) return step.kernel->run(call, context);
  simd::run_pieces(step.piece, context.threads);
  return ok_status();
}

}  // namespace

Status SimdBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  size_t planned = 0;
  return measure_and_plan(call, threads, needs, &planned);
}

Status SimdBackend::measure_and_plan(const OpCall& call, int threads, StepNeeds* needs, size_t* planned) {
  *needs = {};
  needs->call = CallUse::kKept;  // these kernels are quick
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  const Kernel* kernel = kernel_of(call);
  SINTER_RETURN_UNLESS(kernel != nullptr, unsupported("the simd backend has no kernel for this operation"));
  if (simd::is_of_halves(call)) {
    SINTER_RETURN_IF_ERROR(simd::accept_halves(*kernel, call));
    *planned = needs->workspace = simd::halves_workspace(threads);
    return ok_status();
  }
  SINTER_RETURN_IF_ERROR(kernel->accept(call));
  simd::Piece piece;
  if (simd::piece_of(call, &piece)) needs->prepared = sizeof(ElementwiseStep);
  if (simd::choose_variant(call, threads, needs, planned) != nullptr) return ok_status();
  if (kernel->workspace != nullptr)
    SINTER_RETURN_IF_ERROR(kernel->workspace(call, threads, &needs->workspace));
  *planned = needs->workspace;
  return ok_status();
}

Status SimdBackend::pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) {
  StepNeeds needs;
  size_t planned = 0;
  const simd::VariantRow* row = simd::choose_variant(call, 1, &needs, &planned);
  SINTER_RETURN_UNLESS(row != nullptr && packed.size() == needs.packing.bytes,
                       error(Code::kInternal, "measuring and packing disagree"));
  row->variant->pack(call, packed.data(), threads);
  return ok_status();
}

uint64_t SimdBackend::packed_layouts() const { return kSourceDigest | 1; }

Status SimdBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* step) {
  StepNeeds needs;
  size_t planned = 0;
  if (const simd::VariantRow* row = simd::choose_variant(call, 1, &needs, &planned); row != nullptr)
    return prepare_variant(*row, needs, call, with, step);
  const Kernel* kernel = kernel_of(call);
  SINTER_RETURN_UNLESS(kernel != nullptr, unsupported("the simd backend has no kernel for this operation"));
  step->run = simd::is_of_halves(call) ? run_kernel_widened : run_kernel;
  step->state = const_cast<Kernel*>(kernel);
  simd::Piece piece;
  if (!simd::piece_of(call, &piece)) return ok_status();
  auto* elementwise = with.prepared.allocate_array<ElementwiseStep>(1);
  SINTER_RETURN_UNLESS(elementwise != nullptr, kDisagree);
  *elementwise = {kernel, piece};
  step->run = run_elementwise;
  step->state = elementwise;
  return ok_status();
}

bool SimdBackend::fuses(const OpCall& first, const OpCall& next) {
  simd::Piece piece, piece_of_next;
  return simd::piece_of(first, &piece) && simd::piece_of(next, &piece_of_next) &&
         piece.size == piece_of_next.size;
}

bool SimdBackend::fuse(const PreparedStep& first, const PreparedStep& next) {
  if (first.run != run_elementwise || next.run != run_elementwise) return false;
  return simd::fuse_pieces(&static_cast<ElementwiseStep*>(first.state)->piece,
                           &static_cast<ElementwiseStep*>(next.state)->piece);
}

const char* SimdBackend::instruction_set() const { return simd_target(); }

bool SimdBackend::limit_instruction_set(const char* name) { return set_simd_cap(name); }

const char* SimdBackend::kernel_name(const PreparedStep& step) const {
  if (step.run != run_variant) return nullptr;
  const simd::VariantRow& row = *static_cast<const simd::VariantStep*>(step.state)->row;
  return row.variant->full_name != nullptr ? row.variant->full_name() : row.name;
}

}  // namespace sinter

#include "platforms/simd/simd_backend.h"

#include "platforms/simd/float/bfloat16.h"
#include "platforms/simd/float/fused.h"
#include "platforms/simd/packed.h"
#include "platforms/simd/simd_kernels.h"
#include "runtime/core/built.h"
#include "source_digest.h"

namespace sinter {
namespace {

// An op whose kernel reads packed weights, input 1.
struct Packer {
  Op op;
  bool (*packing)(const OpCall& call, int threads, Packing* packing, size_t* workspace) = nullptr;
  void (*pack)(const OpCall& call, std::byte* packed, ThreadPool* threads) = nullptr;
  Status (*run)(void* packed, const OpCall& call, RunContext& context) = nullptr;
  bool keeps_weights = false;  // which runs read as well
};
// The packer, without its functions where the operation is not built: nothing calls them, nor links them.
consteval Packer built(Packer packer) { return is_built(packer.op) ? packer : Packer{.op = packer.op}; }
// Of the rows of an operation the first one that packs the call.
constexpr Packer kPackers[] = {
    built({Op::kConv, simd::winograd_packing, simd::pack_winograd, simd::run_winograd, true}),
    built({Op::kConv, simd::conv_packing, simd::pack_conv, simd::run_packed_conv}),
    built({Op::kFullyConnected, simd::connected_packing, simd::pack_connected, simd::run_packed_connected}),
    built({Op::kLstm, simd::lstm_packing, simd::pack_lstm, simd::run_packed_lstm}),
    built({Op::kQConv, simd::q_product_packing, simd::pack_q_product, simd::run_packed_q_product}),
    built({Op::kQFullyConnected, simd::q_product_packing, simd::pack_q_product, simd::run_packed_q_product}),
    built({Op::kQDepthwiseConv, simd::q_depthwise_packing, simd::pack_q_depthwise,
           simd::run_packed_q_depthwise}),
};

// Null if the step reads its weights as they are; else packing, workspace and packed inputs are set.
const Packer* packer_of(const OpCall& call, int threads, StepNeeds* needs) {
  if (call.inputs.size() < 2 || !call.in(1).constant) return nullptr;
  Packing& packing = needs->packing;
  for (const Packer& p : kPackers) {
    if (p.op != call.op || !p.packing(call, threads, &packing, &needs->workspace) || packing.bytes == 0)
      continue;
    packing.bytes = align_up(packing.bytes, kBufferAlignment);
    packing.parameters[kPackingParameters - 1] = simd_instruction_set();
    needs->packed = p.keeps_weights ? 0 : packing.inputs;
    return &p;
  }
  packing = {};
  return nullptr;
}

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
  *needs = {};
  needs->call = CallUse::kKept;  // these kernels are quick
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  const Kernel* kernel = kernel_of(call);
  SINTER_RETURN_UNLESS(kernel != nullptr, unsupported("the simd backend has no kernel for this operation"));
  if (simd::is_of_halves(call)) {
    SINTER_RETURN_IF_ERROR(simd::accept_halves(*kernel, call));
    needs->workspace = simd::halves_workspace(threads);
    return ok_status();
  }
  SINTER_RETURN_IF_ERROR(kernel->accept(call));
  simd::Piece piece;
  if (simd::piece_of(call, &piece)) needs->prepared = sizeof(ElementwiseStep);
  if (packer_of(call, threads, needs) == nullptr && kernel->workspace != nullptr)
    SINTER_RETURN_IF_ERROR(kernel->workspace(call, threads, &needs->workspace));
  return ok_status();
}

Status SimdBackend::pack(const OpCall& call, std::span<std::byte> packed, ThreadPool* threads) {
  StepNeeds needs;
  const Packer* packer = packer_of(call, 1, &needs);
  SINTER_RETURN_UNLESS(packer != nullptr && packed.size() == needs.packing.bytes,
                       error(Code::kInternal, "measuring and packing disagree"));
  packer->pack(call, packed.data(), threads);
  return ok_status();
}

uint64_t SimdBackend::packed_layouts() const { return kSourceDigest | 1; }

Status SimdBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* step) {
  StepNeeds needs;
  if (const Packer* packer = packer_of(call, 1, &needs); packer != nullptr) {
    SINTER_RETURN_UNLESS(
        with.packed.size() == needs.packing.bytes,
        error(Code::kInternal, "%a bytes of packed weights are needed, not %b",
              static_cast<int64_t>(needs.packing.bytes), static_cast<int64_t>(with.packed.size())));
    step->run = packer->run;
    step->state = const_cast<std::byte*>(with.packed.data());  // read only
    return ok_status();
  }
  const Kernel* kernel = kernel_of(call);
  SINTER_RETURN_UNLESS(kernel != nullptr, unsupported("the simd backend has no kernel for this operation"));
  step->run = simd::is_of_halves(call) ? run_kernel_widened : run_kernel;
  step->state = const_cast<Kernel*>(kernel);
  simd::Piece piece;
  if (!simd::piece_of(call, &piece)) return ok_status();
  auto* elementwise = with.prepared.allocate_array<ElementwiseStep>(1);
  SINTER_RETURN_UNLESS(elementwise != nullptr, error(Code::kInternal, "measuring and preparing disagree"));
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

}  // namespace sinter

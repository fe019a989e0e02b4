// Kernels written once with Highway for x86 (SSE4.2 to AVX-512), NEON and WebAssembly's 128-bit vectors; the
// instruction set is chosen at run time.
//
// The table has entries where these are faster than the reference kernels. They compute in float32: within a
// few units in the last place of the exact result for one-input functions (see isa/math-inl.h), 1e-6 of the
// largest summand per element for sums. Results do not depend on the number of threads; they may differ in
// the last bits between instruction sets. Quantize, Dequantize, Compare, Where and integer kernels give the
// bits of the reference kernels.
#pragma once

#include "runtime/backend/kernel.h"
#include "runtime/backend/target.h"

namespace sinter {

KernelTable simd_kernels();
// Returns whether the operation's kernel has the stated accuracy on the architecture. NEON of 32-bit ARM
// approximates divisions and roots, not to the last bit and wrongly for extreme operands. It also flushes
// subnormal numbers to zero, where Quantize, Dequantize and Compare guarantee the reference's bits.
constexpr bool is_exact_simd(Op op, Architecture architecture) {
  return architecture != Architecture::kArmv7 ||
         (op != Op::kDiv && op != Op::kSqrt && op != Op::kRsqrt && op != Op::kQuantize &&
          op != Op::kDequantize && op != Op::kCompare);
}

// Limits the instruction sets: "sse4", "avx2", "avx512", "avx512_vbmi", "neon", "dotprod", "i8mm", "wasm", or
// null for all. Returns false and changes nothing if this machine or build does not have it. Call it before
// sessions are created.
bool set_simd_cap(const char* name);
// Makes the variant of this name (variants.def) take every call that it computes, the fastest or not; null:
// none. Returns false and changes nothing if no variant has this name. Call it before sessions are created.
bool force_simd_variant(const char* name);
// Returns the best instruction set in use; "none" where the processor has none of them.
const char* simd_target();
// Returns its number, or 0 for none: weights packed for another instruction set cannot be used.
int64_t simd_instruction_set();
// Returns whether it has products of matrices of bytes.
bool simd_has_i8mm();

}  // namespace sinter

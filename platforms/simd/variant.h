// Variants of kernels that pack constant weights once. A variant is one way to compute an operation: one
// object, defined in the file of its code, and one row of variants.def for each operation that it computes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <new>

#include "runtime/backend/backend.h"

namespace sinter::simd {

// Where a variant computes a call faster than the rows below it.
enum class Fit : uint8_t {
  kNever,       // on no instruction set, or it cannot compute the call on the one in use
  kElsewhere,   // on other instruction sets than the one in use, on which it can compute the call too
  kHere,        // on the instruction set in use, but not on every one
  kEverywhere,  // on every instruction set
};

struct VariantNeeds {
  Packing packing;       // the packing, made by form_of()
  size_t workspace = 0;  // of a run, on the instruction set in use
  size_t planned = 0;    // the most that a run needs on any instruction set; 0: no more than `workspace`
};

struct VariantRow;

// A step that a variant computes: the data that prepare() leaves for its runs. The plan follows.
struct alignas(int64_t) VariantStep {
  const VariantRow* row = nullptr;
  std::byte* packed = nullptr;  // read by runs, written by none

  void* plan_memory() { return this + 1; }
  template <class Plan>
  const Plan& plan() const {
    return *static_cast<const Plan*>(static_cast<const void*>(this + 1));
  }
};

// One way to compute calls whose weights, input 1, are constants.
struct Variant {
  // Sets the needs for up to `threads` threads unless the result is kNever. They are the same on every
  // instruction set, except for the packing and a different `planned`.
  Fit (*takes)(const OpCall& call, int threads, VariantNeeds* needs) = nullptr;
  void (*pack)(const OpCall& call, std::byte* packed, ThreadPool* threads) = nullptr;
  // Constructs the plan of all runs in `plan_bytes` bytes, without addresses of operands, for the threads and
  // the workspace of `with`. It fails for a call that `takes` has not measured.
  size_t plan_bytes = 0;
  bool (*plan)(const OpCall& call, const Preparation& with, void* plan) = nullptr;
  Status (*run)(const VariantStep& step, const OpCall& call, RunContext& context) = nullptr;
  // Returns the name with the tile and the instructions of the set in use; null: the name of the row alone.
  const char* (*full_name)() = nullptr;
  bool keeps_weights = false;  // runs read the weights in addition to the packed ones
};

#define SINTER_SIMD_VARIANT(op, variant) extern const Variant variant;
#include "platforms/simd/variants.def"
#undef SINTER_SIMD_VARIANT

struct VariantRow {
  Op op;
  const char* name;        // the name that a profile prints and force_simd_variant() takes
  const Variant* variant;  // null: this build leaves out the operation
};
std::span<const VariantRow> variant_rows();

// Returns the row that computes the call; null: the kernel reads the weights as they are. Sets packing,
// packed inputs, prepared memory and workspace of `needs`, and `planned`, which serves any instruction set.
const VariantRow* choose_variant(const OpCall& call, int threads, StepNeeds* needs, size_t* planned);

// Returns the packed form of the inputs whose bits are set. `parameters` are everything that it depends on
// besides the row and the instruction set.
inline Packing form_of(int64_t bytes, uint32_t inputs, std::initializer_list<int64_t> parameters) {
  Packing form{align_up(static_cast<size_t>(bytes), kBufferAlignment), inputs, {}};
  std::copy(parameters.begin(), parameters.end(), form.parameters + 1);
  return form;
}

// Returns whether all inputs but the first are constants.
inline bool has_constant_rest(const OpCall& call) {
  for (size_t i = 1; i < call.inputs.size(); ++i)
    if (call.has_input(i) && !call.in(i).constant) return false;
  return true;
}

}  // namespace sinter::simd

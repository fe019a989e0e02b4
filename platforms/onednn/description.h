// A problem in the library's terms: the primitive that computes it on this processor, and its packed weights.
#pragma once

#include "platforms/onednn/handle.h"
#include "platforms/onednn/planning/problem.h"
#include "runtime/core/status.h"

namespace sinter::onednn {

// Returns the engine, which the first call creates and nothing destroys. Fails with kUnsupported without
// AVX2. SINTER_CPU_CAP (avx2, avx512, avx512vnni) limits the instruction sets.
Status engine_of_process(dnnl_engine_t* engine);

struct Description {
  PrimitiveDesc primitive;
  size_t scratch = 0;       // bytes
  size_t packed = 0;        // bytes of the packed weights
  uint64_t layout[2] = {};  // equal for equal layouts of packed weights

  // Returns a descriptor that belongs to the description.
  dnnl_memory_desc_t operand(dnnl_query_t what, int index = 0) const;
};
// Fails with kUnsupported if all kernels allocate in every run or are slow ones. Needs the engine.
Status describe(const Problem& p, Description* d);

// Describes the weights as the model has them.
Status describe_weights(const Problem& p, MemoryDesc* weights);

// Describes the multipliers of a product of integers, and a zero point, as the library reads them in a run.
Status describe_multipliers(const Problem& p, MemoryDesc* multipliers);
Status describe_number(MemoryDesc* number);

// Returns the library's answer as a status.
Status outcome(dnnl_status_t status);

}  // namespace sinter::onednn

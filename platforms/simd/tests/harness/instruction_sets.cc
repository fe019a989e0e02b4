#include "tests/op_harness/instruction_sets.h"

#include "platforms/simd/simd_kernels.h"

namespace sinter::test {
namespace {

std::vector<const char*> simd_sets() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all;
    for (const char* name : {"sse4", "avx2", "avx512", "avx512_vbmi", "neon", "dotprod", "i8mm"})
      if (set_simd_cap(name)) all.push_back(name);
    set_simd_cap(nullptr);
    return all;
  }();
  return names;
}

const InstructionSets sets("simd", simd_sets, set_simd_cap);

}  // namespace
}  // namespace sinter::test

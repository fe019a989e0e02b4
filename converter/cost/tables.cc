#include "converter/cost/tables.h"

namespace sinter::convert {

const CostTable& cost_table(Cpu cpu) {
  constexpr const CostTable* kTables[] = {&kAvx512VnniCosts, &kAvx2Costs,     &kDotprodCosts, &kNeonCosts,
                                          &kArmv7Costs,      &kPortableCosts, &kCortexMCosts};
  return *kTables[static_cast<int>(cpu)];
}

}  // namespace sinter::convert

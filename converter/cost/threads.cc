#include "converter/cost/threads.h"

#include "converter/cost/node_cost.h"
#include "converter/cost/tables.h"

namespace sinter::convert {

uint32_t worthwhile_threads(const Target& target, const OpCall& call) {
  const Cpu cpu = cpu_of(target);
  return step_cost(cpu, call) < cost_table(cpu).second_thread.time ? 1 : 0;
}

int planned_threads(const Target& target, const OpCall& call) {
  return worthwhile_threads(target, call) == 1 ? 1 : target.cores;
}

}  // namespace sinter::convert

#include "converter/cost/threads.h"

#include "converter/cost/tables.h"
#include "converter/cost/work.h"

namespace sinter::convert {

uint32_t worthwhile_threads(const Target& target, const OpCall& call) {
  return estimated_work(CallShape(call)) < cost_table(cpu_of(target)).second_thread.work ? 1 : 0;
}

int planned_threads(const Target& target, const OpCall& call) {
  return worthwhile_threads(target, call) == 1 ? 1 : target.cores;
}

}  // namespace sinter::convert

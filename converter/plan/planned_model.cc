#include "converter/plan/planned_model.h"

#include <stdexcept>
#include <utility>

namespace sinter::convert {

void add_entry(PlannedModel& model, PlannedModel&& other) {
  if (model.target != other.target || model.backends != other.backends)
    throw std::logic_error("shape sets are planned for different targets or backends");
  const size_t base = model.programs.size();
  for (const size_t entry : other.entries) model.entries.push_back(base + entry);
  for (PlannedProgram& program : other.programs) {
    for (PlannedStep& step : program.steps)
      for (uint32_t& sub : step.subprograms) sub += static_cast<uint32_t>(base);
    model.programs.push_back(std::move(program));
  }
}

}  // namespace sinter::convert

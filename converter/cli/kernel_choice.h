// The order of a step's candidates by measured times.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/file_view.h"
#include "converter/cli/step_times.h"

namespace sinter::convert {

// A step that another backend computes faster than the first planned one.
struct KernelChoice {
  uint32_t program = 0, step = 0;
  std::string planned, chosen;
  double planned_ns = 0, chosen_ns = 0;
};

// Returns the steps of which another candidate is faster by more than noise: by a twentieth of the planned
// one's time, and by 100 ns. Throws DataError where a time belongs to a step that the profile does not plan.
std::vector<KernelChoice> choose_kernels(const FileView& view, const std::vector<StepTime>& times);

// Returns the file's FlatBuffer with the chosen candidates first, and the others in their order.
std::vector<std::byte> with_choices(const LoadedModel& loaded, uint32_t profile,
                                    const std::vector<KernelChoice>& choices);

}  // namespace sinter::convert

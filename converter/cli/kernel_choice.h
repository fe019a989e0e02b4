// The order of a step's candidates by measured times.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/file_view.h"
#include "converter/cli/step_times.h"

namespace sinter::convert {

// The times of a step on the planned backend and on another one, which is faster.
struct KernelChoice {
  StepTime planned, chosen;
};

// Returns the steps of which another candidate is faster by more than noise: by a twentieth of the planned
// one's time, and by 100 ns. Throws DataError where a time belongs to a step that the profile does not plan.
std::vector<KernelChoice> choose_kernels(const FileView& view, const std::vector<StepTime>& times);

// Returns the file's FlatBuffer with the chosen candidates first, and the others in their order.
std::vector<std::byte> with_choices(const LoadedModel& loaded, uint32_t profile,
                                    const std::vector<KernelChoice>& choices);

}  // namespace sinter::convert

// The texts that `sinter embed` writes: a model as a C array, its sizes, and the kernels that run it.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/target_memory.h"

namespace sinter::convert {

struct Embedded {
  std::string name;    // a C identifier that names the files, the symbols and, in capitals, the macros
  std::string source;  // the model file's name, for comments
  std::string target;  // the target of the profile
  std::vector<std::string> operations;     // those in any program, in ops.def's order
  std::vector<std::string> element_types;  // those of any value, in the order of their numbers
  TargetMemory memory;
};

// The stack on Cortex-M with reference kernels, by GCC 12 for size (tests/microcontroller measures it).
inline constexpr size_t kCortexStackBytes = 12288;

// Returns the operations and types that the file's programs use. `name` is not checked.
Embedded describe_embedded(const LoadedModel& loaded, uint32_t profile, const std::string& name);

std::string embedded_header(const Embedded& e, const LoadedModel& loaded);
std::string embedded_array(const Embedded& e, std::span<const std::byte> file);
std::string embedded_kernels(const Embedded& e);
std::string embedded_cmake(const Embedded& e);

}  // namespace sinter::convert

// Declarations of flags: the form of the value, the group in the help, and the choices. Parsing, --help,
// completion, the manual page and the Python package read the parser's table, the only one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/thread_pool.h"

namespace sinter::convert {

// The groups of flags, in the order of the help.
namespace flag_group {
inline constexpr char kInput[] = "Input", kShapes[] = "Shapes and constants",
                      kPictures[] = "Pictures and sounds", kState[] = "State", kTypes[] = "Types",
                      kQuantization[] = "Quantization", kAccuracy[] = "Accuracy",
                      kTarget[] = "Target and speed", kMemory[] = "Memory", kMeasurement[] = "Measurement",
                      kOutput[] = "Output", kReports[] = "Reports", kPasses[] = "Passes",
                      kGeneral[] = "General";
inline constexpr std::string_view kOrder[] = {kInput,        kShapes,   kPictures, kState,  kTypes,
                                              kQuantization, kAccuracy, kTarget,   kMemory, kMeasurement,
                                              kOutput,       kReports,  kPasses,   kGeneral};
}  // namespace flag_group

// Puts the flags that are declared from here on into this group.
inline void begin_group(CLI::App& command, const char* group) { command.option_defaults()->group(group); }

// Adds a flag with a value, which the help shows as `form` ("NAME=N").
template <class T>
CLI::Option* add_value(CLI::App& command, const char* names, T& value, const char* form, std::string help) {
  return command.add_option(names, value, std::move(help))->option_text(form);
}

// Returns a check that accepts these values; its message about another value names the probable choice.
CLI::Validator one_of(std::vector<std::string> choices);

// Returns the range of a flag that counts threads.
inline CLI::Validator thread_counts() { return CLI::Range(1, PthreadPool::kMostThreads); }
inline void add_threads(CLI::App& command, int& threads, const char* help = "The number of threads") {
  add_value(command, "--threads", threads, "N", help)->check(thread_counts());
}

}  // namespace sinter::convert

// The commands as one program, for main() and for programs that link them (python/).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "converter/cli/command_table.h"
#include "converter/cli/listener.h"
#include "converter/ir/custom_operators.h"

namespace sinter::convert {

// What is printed where memory is missing, without taking any; with --json on stdout, too.
inline constexpr char kExhausted[] = "sinter: out of memory\n";
inline constexpr char kExhaustedJson[] = "{\"error\": \"out of memory\", \"exit_code\": 6}\n";

// SINTER_CPU_CAP names the highest instruction set that kernels may use, for measuring lower ones. To be
// called before anything runs.
void cap_instruction_sets();
// The C library allocates a library's thread-local data when a thread first uses it, and ends the process
// where it cannot. A program that loads this one as a library has that done when it is loaded: for this
// library, and for the exceptions of the C++ library.
void take_thread_local_data();

// `words`: the command and its arguments. Prints, with --json one object whatever happens ("error" and
// "exit_code" of what failed), and returns the exit code: 0 done; 1 negative result; 2
// wrong usage; 3 model refused; 4 model file corrupt, foreign or too new; 5 input or calibration data wrong;
// 6 the system failed.
int run_program(const std::vector<std::string>& words);

// The same inside another program, for the commands that take a listener (Outcome): nothing is printed. Exit
// codes 2, 4, 5 and 6 are the exceptions of converter/diagnostics/errors.h; what the listener throws passes.
int call_command(const std::vector<std::string>& words, CommandListener& listener);

// The operators of shared objects with custom operators; null: none are given. What was loaded stays loaded.
// Throws UsageError.
std::shared_ptr<const CustomOperators> load_custom_operators(const std::vector<std::string>& libraries);

// Of one command, without its positional arguments, in the order of --help.
std::vector<CommandFlag> flags_of(const std::string& command);

}  // namespace sinter::convert

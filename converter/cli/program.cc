#include "converter/cli/program.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "converter/cli/command_table.h"
#include "converter/cli/commands.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/ir/weight_memory.h"
#include "sinter/backends.h"

namespace sinter::convert {
namespace {

// Whether --json is given, also in a command that cannot be parsed.
bool wants_json(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;  // paths follow
    if (word == "--json" || word == "--json=true") return true;
  }
  return false;
}

// Prints an error on stderr, and with `json` on stdout as well, and returns the code.
int say(int code, const char* text, bool json) {
  print_messages(fmt::format("sinter: {}\n", one_message(text)));
  if (json) print_json({{"error", text}, {"exit_code", code}});
  return code;
}

int say_exhausted(bool json) {
  std::fputs(kExhausted, stderr);
  if (json) std::fputs(kExhaustedJson, stdout);
  return 6;
}

// Returns the words that the command does not take, with the flags that were probably meant; empty: none.
std::string unexpected_text(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CommandFlag& flag : describe_command(command).flags) flags.push_back("--" + flag.name);
  std::vector<std::string> faults;
  for (const std::string& given : command.remaining()) {
    if (given == "--") continue;  // paths follow
    if (!given.starts_with('-')) {
      faults.push_back(fmt::format("'{}' is one argument too many", given));
      continue;
    }
    const std::string name = given.substr(0, given.find('='));
    std::string fault = fmt::format("'{}' is not a flag of this command", name);
    std::string others;
    for (const CommandInfo& other : command_table(app))
      for (const CommandFlag& flag : other.flags)
        if ("--" + flag.name == name) others += fmt::format("{}{}", others.empty() ? "" : ", ", other.name);
    if (!others.empty())
      fault += fmt::format(" but of {}", others);
    else if (const std::string* near = nearest_name(flags, name))
      fault += fmt::format(", did you mean '{}'?", *near);
    faults.push_back(fault);
    break;  // the next word may be its value
  }
  return fmt::format("{}", fmt::join(faults, "; "));
}

// Returns the text of a parser error: the command, the fault, the remedy. `words` is the command line.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& words) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> commands;
    for (const CommandInfo& command : command_table(app)) commands.push_back(command.name);
    std::string wanted;
    for (const std::string& word : words)
      if (wanted.empty() && !word.starts_with('-')) wanted = word;
    if (!wanted.empty()) {
      const std::string* near = nearest_name(commands, wanted);
      return fmt::format("'{}' is not a command; {}", wanted,
                         near != nullptr ? fmt::format("did you mean '{}'? See sinter --help", *near)
                                         : fmt::format("give one of {}", fmt::join(commands, ", ")));
    }
    if (!words.empty())
      return fmt::format("'{}' needs a command before it; see sinter --help", words.front());
    return fmt::format("no command is given; give one of {}", fmt::join(commands, ", "));
  }
  const CLI::App& command = *chosen.front();
  std::string what = error.what();
  if (what.starts_with("The ")) what[0] = 't';
  if (constexpr std::string_view kRequired = " is required"; what.ends_with(kRequired))
    what = what.substr(0, what.size() - kRequired.size()) + " is missing";
  if (const std::string unexpected = unexpected_text(app, command); !unexpected.empty()) what = unexpected;
  return fmt::format("{}: {}{} sinter {} --help", command.get_name(), what,
                     what.ends_with('?') ? " See" : "; see", command.get_name());
}

// Refuses names of standard streams: models are mapped, and results appear whole or not at all.
void refuse_streams(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word == "-" || word == "-o-" || (word.starts_with('-') && word.ends_with("=-")))
      throw UsageError(fmt::format(
          "'{}': standard input and output cannot be given as '-'; give the name of a file (/dev/stdout for "
          "--outputs, --report and --html, ./- for a file of this name)",
          word));
}

// Returns the text of a FileError, which names the file and the fault, with the remedy that most have.
std::string with_remedy(std::string text) {
  if (text.find(';') != std::string::npos) return text;
  for (const int full : {ENOSPC, EDQUOT, EFBIG})
    if (text.find(std::strerror(full)) != std::string::npos)
      return text + "; make room there, or write to another place";
  return text + "; check the path and its permissions";
}

// The parser of all commands.
class Parser {
 public:
  explicit Parser(Outcome& outcome) {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "sinter " SINTER_VERSION);
    add_convert(app_, outcome);
    add_inspect(app_, outcome);
    add_explain(app_, outcome);
    add_embed(app_, outcome);
    add_repair(app_, outcome);
    add_run(app_, outcome);
    add_compare(app_, outcome);
    add_bench(app_, outcome);
    add_tune(app_, outcome);
    add_pack(app_, outcome);
    add_ranges(app_, outcome);
    add_quantize(app_, outcome);
    add_simplify(app_, outcome);
    add_keygen(app_, outcome);
    add_sign(app_, outcome);
    add_self_description(app_);
    for (CLI::App* command : app_.get_subcommands({})) command->get_help_ptr()->group(flag_group::kGeneral);
  }
  CLI::App& app() { return app_; }
  // Runs the command that the words give. Throws UsageError, or CLI::Success where they ask for help.
  void run(const std::vector<std::string>& words) {
    refuse_streams(words);
    try {
      std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 takes them
      app_.parse(reversed);
    } catch (const CLI::Success&) {
      throw;
    } catch (const CLI::ParseError& e) {
      throw UsageError(usage_text(app_, e, words));
    }
  }

 private:
  CLI::App app_{"", "sinter"};
};

}  // namespace

void take_thread_local_data() {
  const WeightMemory none(0);
  try {
    throw 0;
  } catch (int) {
  }
}

void cap_instruction_sets() {
  const char* cap = std::getenv("SINTER_CPU_CAP");
  if (cap == nullptr) return;
  for (Backend* backend : default_backends())
    backend->limit_instruction_set(std::string_view(cap) == "sse41" ? "sse4" : cap);
}

int run_program(const std::vector<std::string>& words) {
  const bool json = wants_json(words);
  Outcome outcome;
  Parser parser(outcome);
  try {
    parser.run(words);
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = parser.app().get_subcommands();
    print_help(parser.app(), chosen.empty() ? nullptr : chosen.front());
  } catch (const CLI::Success& e) {  // --version
    return parser.app().exit(e, std::cout, std::cerr);
  } catch (const UsageError& e) {
    return say(2, e.what(), json);
  } catch (const ModelFileError& e) {
    return say(4, e.what(), json);
  } catch (const DataError& e) {
    return say(5, e.what(), json);
  } catch (const FileError& e) {
    return say(6, with_remedy(e.what()).c_str(), json);
  } catch (const std::bad_alloc&) {
    return say_exhausted(json);
  } catch (const std::exception& e) {
    return say(6, (std::string("internal error: ") + e.what()).c_str(), json);
  }
  // A full disk behind a redirection shows here at the latest.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return say(6, "standard output cannot be written", false);
  return outcome.exit_code;
}

int call_command(const std::vector<std::string>& words, CommandListener& listener) {
  Outcome outcome;
  outcome.listener = &listener;
  Parser(outcome).run(words);
  return outcome.exit_code;
}

std::vector<CommandFlag> flags_of(const std::string& command) {
  Outcome outcome;
  Parser parser(outcome);
  std::vector<CommandFlag> flags;
  for (CommandFlag& flag : describe_command(*parser.app().get_subcommand(command)).flags)
    if (flag.name != "help") flags.push_back(std::move(flag));
  return flags;
}

}  // namespace sinter::convert

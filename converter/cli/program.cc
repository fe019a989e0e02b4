#include "converter/cli/program.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "platforms/simd/simd_kernels.h"

namespace sinter::convert {
namespace {

int say(int code, const char* text) {
  std::fprintf(stderr, "sinter: %s\n", text);
  return code;
}

// A parser error: the command, what is wrong, what to do. `words`: what was given.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& words) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  std::string what = error.what();
  if (what.starts_with("The ")) what[0] = 't';
  if (chosen.empty()) {
    std::vector<std::string> commands;
    for (const CLI::App* c : app.get_subcommands({})) commands.push_back(c->get_name());
    std::string wanted;
    for (const std::string& word : words)
      if (wanted.empty() && !word.starts_with('-')) wanted = word;
    if (wanted.empty()) return fmt::format("no command is given; give one of {}", fmt::join(commands, ", "));
    const std::string* near = nearest_name(commands, wanted);
    return fmt::format("'{}' is not a command; give {}", wanted,
                       near != nullptr ? "'" + *near + "', or see sinter --help"
                                       : fmt::format("one of {}", fmt::join(commands, ", ")));
  }
  const CLI::App& command = *chosen.front();
  if (constexpr std::string_view kRequired = " is required"; what.ends_with(kRequired))
    what = what.substr(0, what.size() - kRequired.size()) + " is missing";
  std::string advice = fmt::format("see sinter {} --help", command.get_name());
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  for (const std::string& given : command.remaining())
    if (given.starts_with("--"))
      if (const std::string* near = nearest_name(flags, given.substr(0, given.find('='))))
        advice = fmt::format("{} may be meant, or {}", *near, advice);
  return fmt::format("{}: {}; {}", command.get_name(), what, advice);
}

// FileError's texts name the file and the fault; the remedy of most is the same.
std::string with_remedy(std::string text) {
  return text.find(';') == std::string::npos ? text + "; check the path and its permissions" : text;
}

// The parser, with every command.
class Parser {
 public:
  explicit Parser(Outcome& outcome) {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "sinter " SINTER_VERSION);
    add_convert(app_, outcome);
    add_inspect(app_, outcome);
    add_explain(app_, outcome);
    add_embed(app_, outcome);
    add_run(app_, outcome);
    add_compare(app_, outcome);
    add_bench(app_, outcome);
    add_tune(app_, outcome);
    add_ranges(app_, outcome);
    add_keygen(app_, outcome);
    add_sign(app_, outcome);
  }
  CLI::App& app() { return app_; }
  // Runs the command that the words give. Throws UsageError, or CLI::Success where they ask for help.
  void run(const std::vector<std::string>& words) {
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
  CLI::App app_{
      "Sinter turns an ONNX model into a compact file with a fixed memory plan, and runs it.\n\n  sinter "
      "convert net.onnx -o net.sinter        convert\n  sinter run net.sinter --inputs in.npz        run on "
      "arrays with the names of the model's inputs\n  sinter inspect net.sinter --steps            show the "
      "plan",
      "sinter"};
};

}  // namespace

void cap_instruction_sets() {
  const char* cap = std::getenv("SINTER_CPU_CAP");
  if (cap != nullptr) set_simd_cap(std::string_view(cap) == "sse41" ? "sse4" : cap);
}

int run_program(const std::vector<std::string>& words) {
  Outcome outcome;
  Parser parser(outcome);
  try {
    parser.run(words);
  } catch (const CLI::Success& e) {  // --help, --version
    return parser.app().exit(e, std::cout, std::cerr);
  } catch (const UsageError& e) {
    return say(2, e.what());
  } catch (const ModelFileError& e) {
    return say(4, e.what());
  } catch (const DataError& e) {
    return say(5, e.what());
  } catch (const FileError& e) {
    return say(6, with_remedy(e.what()).c_str());
  } catch (const std::bad_alloc&) {
    return say(6, "out of memory");
  } catch (const std::exception& e) {
    return say(6, (std::string("internal error: ") + e.what()).c_str());
  }
  // A full disk behind a redirection shows here at the latest.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return say(6, "standard output cannot be written");
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
  for (const CLI::Option* option : parser.app().get_subcommand(command)->get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    flags.push_back({option->get_lnames().front(), option->get_type_name(), option->get_description(),
                     option->get_items_expected_max() > 0, option->get_items_expected_max() > 1});
  }
  return flags;
}

}  // namespace sinter::convert

// sinter: the command line. Exit codes: 0 done; 1 negative result; 2 wrong usage; 3 model refused; 4 model
// file corrupt, foreign or too new; 5 input or calibration data wrong; 6 the system failed.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "converter/cli/commands.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/files/unfinished.h"
#include "platforms/simd/simd_kernels.h"

namespace {

int say(int code, const char* text) {
  std::fprintf(stderr, "sinter: %s\n", text);
  return code;
}

// SINTER_CPU_CAP names the highest instruction set that kernels may use, for measuring lower ones. XNNPACK
// reads it too, and has its own name for SSE4.
void cap_instruction_sets() {
  const char* cap = std::getenv("SINTER_CPU_CAP");
  if (cap != nullptr) sinter::set_simd_cap(std::string_view(cap) == "sse41" ? "sse4" : cap);
}

// A parser error: the command, what is wrong, what to do.
int say_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  using sinter::convert::nearest_name;
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  std::string what = error.what();
  if (what.starts_with("The ")) what[0] = 't';
  if (chosen.empty()) {
    std::vector<std::string> commands;
    for (const CLI::App* c : app.get_subcommands({})) commands.push_back(c->get_name());
    std::string wanted;
    for (int i = 1; i < argc && wanted.empty(); ++i)
      if (argv[i][0] != '-') wanted = argv[i];
    if (wanted.empty())
      return say(2, fmt::format("no command is given; give one of {}", fmt::join(commands, ", ")).c_str());
    const std::string* near = nearest_name(commands, wanted);
    return say(2, fmt::format("there is no command '{}'; give {}", wanted,
                              near != nullptr ? "'" + *near + "', or see sinter --help"
                                              : fmt::format("one of {}", fmt::join(commands, ", ")))
                      .c_str());
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
  return say(2, fmt::format("{}: {}; {}", command.get_name(), what, advice).c_str());
}

// FileError's texts name the file and the fault; the remedy of most is the same.
std::string with_remedy(std::string text) {
  return text.find(';') == std::string::npos ? text + "; check the path and its permissions" : text;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sinter::convert;
  remove_unfinished_on_signals();
  cap_instruction_sets();
  CLI::App app{
      "Sinter turns an ONNX model into a compact file with a fixed memory plan, and runs it.\n\n  sinter "
      "convert net.onnx -o net.sinter        convert\n  sinter run net.sinter --inputs in.npz        run on "
      "arrays with the names of the model's inputs\n  sinter inspect net.sinter --steps            show the "
      "plan"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "sinter " SINTER_VERSION);
  Outcome outcome;
  add_convert(app, outcome);
  add_inspect(app, outcome);
  add_explain(app, outcome);
  add_embed(app, outcome);
  add_run(app, outcome);
  add_compare(app, outcome);
  add_bench(app, outcome);
  add_tune(app, outcome);
  add_ranges(app, outcome);
  add_keygen(app, outcome);
  add_sign(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // --help and --version come this way with code 0.
    return e.get_exit_code() == 0 ? app.exit(e, std::cout, std::cerr) : say_usage(app, e, argc, argv);
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

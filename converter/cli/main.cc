// sinter: the command line. Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 model refused; 4 model
// file corrupt, foreign or too new; 5 input or calibration data wrong; 6 the system failed.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "converter/cli/commands.h"
#include "converter/report/errors.h"
#include "converter/report/unfinished.h"
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

}  // namespace

int main(int argc, char** argv) {
  using namespace sinter::convert;
  remove_unfinished_on_signals();
  cap_instruction_sets();
  CLI::App app{
      "Sinter turns an ONNX model into a compact file with a fixed memory plan, and runs it.\n\n"
      "  sinter convert net.onnx -o net.sinter        convert\n"
      "  sinter run net.sinter --inputs in.npz        run on arrays named as the model's inputs\n"
      "  sinter inspect net.sinter --steps            see what was planned"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "sinter " SINTER_VERSION);
  Outcome outcome;
  add_convert(app, outcome);
  add_inspect(app, outcome);
  add_explain(app, outcome);
  add_run(app, outcome);
  add_compare(app, outcome);
  add_bench(app, outcome);
  add_ranges(app, outcome);
  add_keygen(app, outcome);
  add_sign(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // --help and --version come this way with code 0.
    return app.exit(e, std::cout, std::cerr) == 0 ? 0 : 2;
  } catch (const UsageError& e) {
    return say(2, e.what());
  } catch (const ModelFileError& e) {
    return say(4, e.what());
  } catch (const DataError& e) {
    return say(5, e.what());
  } catch (const FileError& e) {
    return say(6, e.what());
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

// The commands of the command line, called in this process.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/unfinished.h"
#include "python/native/module.h"

namespace sinter::python {
namespace {

namespace nb = nanobind;
using convert::CommandFlag;

// Names in models and files are any bytes, so they are passed as bytes, not as str.
std::vector<std::string> texts(const nb::list& words) {
  std::vector<std::string> result;
  for (const nb::handle word : words) {
    const auto bytes = nb::cast<nb::bytes>(word);
    result.emplace_back(bytes.c_str(), bytes.size());
  }
  return result;
}

// Runs without the interpreter's lock, which it takes to report. An exception of the callback, or of a
// signal's handler (KeyboardInterrupt), ends the command.
class Listener final : public convert::CommandListener {
 public:
  explicit Listener(nb::object progress) : progress_(std::move(progress)) {}

  void result(const nlohmann::json& json, const std::string& text) override {
    json_ = convert::json_text(json, -1), text_ = convert::printable_lines(text);
  }
  void progress(double fraction, const std::string& stage) override {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress_.is_none()) progress_(fraction, stage);
  }
  const std::string& json() const { return json_; }
  const std::string& text() const { return text_; }

 private:
  const nb::object progress_;
  std::string json_, text_;
};

nb::tuple call(const nb::list& words, nb::object progress) {
  Listener listener(std::move(progress));
  const std::vector<std::string> given = texts(words);
  const char* type = nullptr;
  std::string fault;
  int code = 0;
  try {
    const nb::gil_scoped_release unlocked;
    code = convert::call_command(given, listener);
  } catch (const convert::UsageError& e) {
    type = "UsageError", fault = e.what();
  } catch (const convert::DataError& e) {
    type = "DataError", fault = e.what();
  } catch (const convert::ModelFileError& e) {
    type = "ModelFileError", fault = e.what();
  } catch (const convert::FileError& e) {
    type = "FileError", fault = e.what();
  }
  if (type != nullptr) raise(type, fault);
  const auto text = [](const std::string& t) {
    return nb::steal<nb::str>(PyUnicode_DecodeUTF8(t.data(), static_cast<Py_ssize_t>(t.size()), "replace"));
  };
  return nb::make_tuple(code, text(listener.json()), text(listener.text()));
}

int run_program(const nb::list& words) {
  const std::vector<std::string> given = texts(words);
  const nb::gil_scoped_release unlocked;
  convert::remove_unfinished_on_signals();
  return convert::run_program(given);
}

}  // namespace

void add_commands(nb::module_& m) {
  nb::class_<CommandFlag>(m, "Flag", "A flag of a command, as its --help describes it.")
      .def_ro("name", &CommandFlag::name)
      .def_ro("type", &CommandFlag::type)
      .def_ro("form", &CommandFlag::form)
      .def_prop_ro("help",
                   [](const CommandFlag& f) { return f.form.empty() ? f.help : f.form + ": " + f.help; })
      .def_ro("takes_value", &CommandFlag::takes_value)
      .def_ro("repeats", &CommandFlag::repeats);
  m.def("flags", &convert::flags_of, nb::arg("command"), nb::sig("def flags(command: str) -> list[Flag]"),
        "In the order of --help, without positional arguments.");
  m.def("call", &call, nb::arg("words"), nb::arg("progress").none(),
        nb::sig("def call(words: list[bytes], progress: collections.abc.Callable[[float, str], object] | "
                "None) -> tuple[int, str, str]"),
        "Runs a command: its exit code, its result as JSON, and as text.");
  m.def("run_program", &run_program, nb::arg("words"), nb::sig("def run_program(words: list[bytes]) -> int"),
        "Runs a command as a program of its own: prints, and returns the exit code.");
  m.def(
      "nearest_name",
      [](const std::vector<std::string>& names, const std::string& wanted) -> nb::object {
        const std::string* near = convert::nearest_name(names, wanted);
        return near != nullptr ? nb::cast(*near) : nb::none();
      },
      nb::arg("names"), nb::arg("wanted"),
      nb::sig("def nearest_name(names: collections.abc.Sequence[str], wanted: str) -> str | None"));
}

}  // namespace sinter::python

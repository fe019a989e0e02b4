// The parts of the module `_native`.
#pragma once

#include <nanobind/nanobind.h>

#include "converter/cli/program.h"
#include "converter/diagnostics/printable.h"

namespace sinter::python {

void add_commands(nanobind::module_& m);
void add_session(nanobind::module_& m);

// Throws the class `name` of sinter_runtime.errors with a message and further arguments.
template <class... More>
[[noreturn]] void raise(const char* name, const std::string& text, const More&... more) {
  const nanobind::object type = nanobind::module_::import_("sinter_runtime.errors").attr(name);
  const nanobind::object error = type(convert::one_message(text), more...);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nanobind::python_error();
}

}  // namespace sinter::python

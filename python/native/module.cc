// _native: the functions of the converter and the runtime for the Python package. The package checks
// arguments; users do not import this module.
#include "python/native/module.h"

#include <nanobind/nanobind.h>

NB_MODULE(_native, m) {
  sinter::convert::take_thread_local_data();
  sinter::convert::cap_instruction_sets();
  m.attr("version") = SINTER_VERSION;
  sinter::python::add_commands(m);
  sinter::python::add_session(m);
}

#include "converter/cli/compared_ports.h"

#include <fmt/format.h>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {

PortInfo port_of(const Model& model, uint32_t entry, bool input, const std::string& name) {
  const int at = input ? model.find_input(name.c_str(), entry) : model.find_output(name.c_str(), entry);
  if (at < 0) return {};
  const auto i = static_cast<uint32_t>(at);
  return input ? model.input(i, entry) : model.output(i, entry);
}

bool same_numbers(const PortInfo& a, const PortInfo& b) {
  return a.dtype == b.dtype && integer_scale(a) == integer_scale(b);
}

void check_bytes(const Model& first, uint32_t first_entry, const Model& second, uint32_t entry) {
  for (uint32_t i = 0; i < second.input_count(entry); ++i) {
    const PortInfo b = second.input(i, entry), a = port_of(first, first_entry, true, b.name);
    if (is_float(a.dtype) && b.dtype == DType::kUint8)
      throw UsageError(fmt::format(
          "input '{}' is {} in A but uint8 in B; give --input-type uint8 and the other flags that B "
          "was converted with",
          printable(b.name), dtype_name(a.dtype)));
  }
}

Arrays for_first(const Arrays& arrays, const Model& first, uint32_t first_entry, const Model& second,
                 uint32_t entry) {
  Arrays out;
  for (const auto& [name, array] : arrays) {
    const PortInfo b = name.empty() ? second.input(0, entry) : port_of(second, entry, true, name),
                   a = port_of(first, first_entry, true, b.name);
    ConstantPtr given = array;
    if (takes_numbers(b) && array->dtype() == DType::kFloat32)
      given = as_integers(array, integer_scale(b), b.name);
    if (takes_numbers(b) && !same_numbers(a, b)) given = as_numbers(given, integer_scale(b));
    out.emplace_back(name, given);
  }
  return out;
}

}  // namespace sinter::convert

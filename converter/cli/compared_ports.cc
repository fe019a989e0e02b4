#include "converter/cli/compared_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {
namespace {

// Returns the --layout by which pixels of shape `a` get shape `b`; null if no layout is needed or suits.
const char* layout_between(const Dims& a, std::span<const int64_t> b) {
  const size_t n = a.size();
  if (n < 3 || b.size() != n) return nullptr;
  const auto same = [](int64_t x, int64_t y) { return x < 0 || x == y; };  // a dimension below 0 is open
  const auto moved = [&](size_t i, size_t j, size_t k) {
    return same(a[n - 3], b[i]) && same(a[n - 2], b[j]) && same(a[n - 1], b[k]);
  };
  if (moved(n - 3, n - 2, n - 1)) return nullptr;
  return moved(n - 1, n - 3, n - 2) ? "nhwc" : moved(n - 2, n - 1, n - 3) ? "nchw" : nullptr;
}

// Refuses bytes where the other model takes floats, or pixels in another order.
void check_bytes(DType type, const Dims& dims, const PortInfo& b, bool onnx) {
  const bool other_type =
      is_float(type) ? b.dtype == DType::kUint8 : type == DType::kUint8 && is_float(b.dtype);
  const char* layout = b.dtype == DType::kUint8 || other_type ? layout_between(dims, b.dims) : nullptr;
  if (!other_type && layout == nullptr) return;
  const std::string flags = layout == nullptr ? "" : fmt::format(" --layout {}", layout);
  const std::string advice =
      !onnx         ? "compare both with the ONNX model, each with the flags that it was converted with"
      : !other_type ? "give" + flags + ", as B was converted"
      : is_float(b.dtype)
          ? "leave out --input-type uint8"
          : "give --input-type uint8" + flags +
                " and the other flags that B was converted with (--mean, --scale, --channel-order)";
  const auto shown = [&](DType t, const Dims& d) {
    const bool open = std::any_of(d.begin(), d.end(), [](int64_t n) { return n < 0; });
    return layout == nullptr || open ? std::string(dtype_name(t)) : to_string(t, d);
  };
  throw UsageError(fmt::format("input '{}' is {} in A but {} in B; {}", printable(b.name), shown(type, dims),
                               shown(b.dtype, Dims(b.dims.begin(), b.dims.end())), advice));
}

}  // namespace

PortInfo port_of(const Model& model, uint32_t entry, bool input, const std::string& name) {
  const int at = input ? model.find_input(name.c_str(), entry) : model.find_output(name.c_str(), entry);
  if (at < 0) return {};
  const auto i = static_cast<uint32_t>(at);
  return input ? model.input(i, entry) : model.output(i, entry);
}

bool takes_bytes(const Model& model, uint32_t entry) {
  for (uint32_t i = 0; i < model.input_count(entry); ++i)
    if (model.input(i, entry).dtype == DType::kUint8) return true;
  return false;
}

bool same_numbers(const PortInfo& a, const PortInfo& b) {
  return a.dtype == b.dtype && integer_scale(a) == integer_scale(b);
}

void check_inputs(const Model& first, uint32_t first_entry, const Model& second, uint32_t entry, bool onnx) {
  for (uint32_t i = 0; i < second.input_count(entry); ++i) {
    const PortInfo b = second.input(i, entry), a = port_of(first, first_entry, true, b.name);
    if (a.dtype != DType::kNone) check_bytes(a.dtype, Dims(a.dims.begin(), a.dims.end()), b, onnx);
  }
  for (uint32_t i = 0; i < first.input_count(first_entry); ++i) {
    const PortInfo a = first.input(i, first_entry);
    if (onnx && port_of(second, entry, true, a.name).dtype == DType::kNone)
      throw UsageError(fmt::format(
          "input '{0}' of A is not one of B; if B was converted with --const {0}=FILE.npy, give it "
          "here, too",
          printable(a.name)));
  }
}

void check_declared(const ImportedGraph& first, const Model& second, uint32_t entry) {
  for (const ImportedValueInfo& a : first.inputs) {
    const PortInfo b = port_of(second, entry, true, a.name);
    Dims dims;
    for (const ImportedDim& dim : a.dims) dims.push_back(dim.value);
    if (b.dtype != DType::kNone && is_float(a.dtype)) check_bytes(a.dtype, dims, b, true);
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

#include "converter/import/input_shapes.h"

#include <fmt/format.h>

#include <utility>

#include "converter/import/caches/cache_sizes.h"

namespace sinter::convert {

std::string shape_text(const Dims& dims) {
  return dims.empty() ? kScalarShape : fmt::format("{}", fmt::join(dims, ","));
}

InputShapes::InputShapes(const ImportedGraph& graph, const LoweringOptions& options,
                         std::set<std::string> batches, Diagnostics& diagnostics)
    : graph_(graph), options_(options), batches_(std::move(batches)), diagnostics_(diagnostics) {
  for (const ImportedValueInfo& input : graph.inputs)
    for (size_t axis = 0; axis < input.dims.size(); ++axis)
      if (const std::string& symbol = input.dims[axis].symbol; !symbol.empty() && axis > 0)
        inner_.insert(symbol);
  // A symbol that --shape fixes holds for every input that uses it.
  for (const ImportedValueInfo& input : graph.inputs) {
    const auto it = options.shapes.find(input.name);
    if (it == options.shapes.end() || it->second.size() != input.dims.size()) continue;
    for (size_t axis = 0; axis < input.dims.size(); ++axis)
      if (const std::string& symbol = input.dims[axis].symbol; !symbol.empty())
        symbols_.emplace(symbol, it->second[axis]);
  }
}

std::optional<Dims> InputShapes::resolve(const ImportedValueInfo& input) {
  const auto given = options_.shapes.find(input.name);
  if (given != options_.shapes.end()) {
    if (input.has_shape && given->second.size() != input.dims.size()) {
      diagnostics_.refuse("", "",
                          fmt::format("--shape {}={} has {} dims but the model's input has {}", input.name,
                                      shape_text(given->second), given->second.size(), input.dims.size()),
                          input.dims.empty() ? fmt::format("give --shape {}={}", input.name, kScalarShape)
                                             : "give a size for every dim of the input");
      return std::nullopt;
    }
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const ImportedDim& dim = input.dims[axis];
      if (dim.value < 0 || dim.value == given->second[axis]) continue;
      // A declared dim is a claim; what the operators cannot take is refused where it matters.
      diagnostics_.note("", "",
                        fmt::format("--shape {}={} replaces the declared dim {} of {}", input.name,
                                    fmt::join(given->second, ","), axis, dim.value));
    }
    for (size_t axis = 0; axis < input.dims.size(); ++axis)
      if (input.dims[axis].value < 0) settle(input, axis, given->second[axis], SettledDim::By::kShape);
    return given->second;
  }
  if (!input.has_shape) {
    open_.push_back(fmt::format("{} (no shape at all)", input.name));
    without_shape_ = input.name;
    return std::nullopt;
  }
  Dims dims;
  bool known = true;
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    const ImportedDim& dim = input.dims[axis];
    if (dim.value >= 0) {
      dims.push_back(dim.value);
    } else if (const auto d = options_.dims.find(dim.symbol);
               !dim.symbol.empty() && d != options_.dims.end()) {
      dims.push_back(settle(input, axis, d->second, SettledDim::By::kDim));
    } else if (const auto r = options_.ranges.find(dim.symbol);
               !dim.symbol.empty() && r != options_.ranges.end()) {
      dims.push_back(settle(input, axis, r->second.maximum, SettledDim::By::kDim, r->second.minimum));
    } else if (const auto s = symbols_.find(dim.symbol); !dim.symbol.empty() && s != symbols_.end()) {
      dims.push_back(settle(input, axis, s->second, SettledDim::By::kShape));
    } else if (is_batch(dim, axis)) {
      dims.push_back(settle(input, axis, 1, SettledDim::By::kDefault));
    } else if (const auto size = axis == 3 ? cache_row_size(graph_, input.name) : std::nullopt) {
      dims.push_back(settle(input, axis, *size, SettledDim::By::kReader));
    } else if (options_.assumed > 0) {
      dims.push_back(options_.assumed);
    } else {
      open_.push_back(fmt::format("{} dim {}{}", input.name, axis,
                                  dim.symbol.empty() ? std::string() : " '" + dim.symbol + "'"));
      known = false;
    }
  }
  if (!known) return std::nullopt;
  return dims;
}

void InputShapes::report_open() {
  if (open_.empty() || options_.assumed > 0) return;
  diagnostics_.refuse("", "", fmt::format("these dimensions are open: {}", fmt::join(open_, "; ")),
                      std::string("give each with --dim NAME=N, --dim NAME=MIN..MAX or --shape INPUT=...") +
                          (without_shape_.empty() ? std::string()
                                                  : fmt::format("; --shape {}={} if that has no dimensions",
                                                                without_shape_, kScalarShape)));
}

int64_t InputShapes::settle(const ImportedValueInfo& input, size_t axis, int64_t size, SettledDim::By by,
                            int64_t minimum) {
  settled_.push_back({input.name, axis, input.dims[axis].symbol, size, by, minimum < size ? minimum : -1});
  return size;
}

bool InputShapes::is_batch(const ImportedDim& dim, size_t axis) const {
  return batches_.count(dim.symbol) != 0 ||
         (axis == 0 && (dim.symbol.empty() || inner_.count(dim.symbol) == 0));
}

}  // namespace sinter::convert

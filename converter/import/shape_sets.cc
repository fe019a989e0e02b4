#include "converter/import/shape_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/import/input_shapes.h"
#include "converter/import/read/imported_graph.h"

namespace sinter::convert {
namespace {

constexpr std::string_view kSpace = " \t\n";

// A part of the whole text, without spaces around it.
struct Piece {
  std::string_view text;
  size_t at = 0;  // in the whole text

  static Piece trimmed(std::string_view text, size_t at) {
    const size_t first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {{}, at};
    return {text.substr(first, text.find_last_not_of(kSpace) + 1 - first), at + first};
  }
  std::vector<Piece> split(char separator) const {
    std::vector<Piece> pieces;
    for (size_t from = 0; from <= text.size();) {
      const size_t end = std::min(text.find(separator, from), text.size());
      pieces.push_back(trimmed(text.substr(from, end - from), at + from));
      from = end + 1;
    }
    return pieces;
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw UsageError(fmt::format(
        "--shapes, character {}: {}; write NAME=SIZE, with commas between them and a semicolon between sets, "
        "such as \"batch=1,seq=16; batch=8,seq=128\"",
        at + 1, what));
  }
};

int64_t size_of(const Piece& piece) {
  const std::optional<int64_t> size = parse_size(piece.text);
  if (!size) piece.fail(fmt::format("'{}' is not a valid size", piece.text));
  return *size;
}

ShapeSet parse_set(const Piece& set) {
  ShapeSet result{std::string(set.text), {}};
  for (const Piece& piece : set.split(',')) {
    if (piece.text.empty()) piece.fail("a size is missing");
    const size_t equals = piece.text.rfind('=');
    if (equals == std::string_view::npos) {
      // A further size of an input's shape.
      if (result.items.empty() || result.items.back().sizes.empty())
        piece.fail(fmt::format("'{}' has no name", piece.text));
      result.items.back().sizes.push_back(size_of(piece));
      continue;
    }
    const Piece name = Piece::trimmed(piece.text.substr(0, equals), piece.at);
    if (name.text.empty()) piece.fail("a name is missing");
    for (const ShapeSet::Item& other : result.items)
      if (other.name == name.text) name.fail(fmt::format("'{}' is given twice in one set", name.text));
    const Piece size = Piece::trimmed(piece.text.substr(equals + 1), piece.at + equals + 1);
    const bool scalar = size.text == kScalarShape;
    result.items.push_back({std::string(name.text), scalar ? Dims() : Dims{size_of(size)}});
  }
  return result;
}

// The names that --shapes may hold.
struct ModelNames {
  std::vector<std::string> symbols, inputs;

  ModelNames(const ImportedModel& model, const LoweringOptions& options) {
    for (const ImportedValueInfo& input : model.graph.inputs) {
      if (options.constants.count(input.name) != 0) continue;
      inputs.push_back(input.name);
      for (const ImportedDim& dim : input.dims)
        if (!dim.symbol.empty() && dim.value < 0 && !has(symbols, dim.symbol)) symbols.push_back(dim.symbol);
    }
  }
  static bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  // One size under a dimension's name is that dimension's.
  bool is_symbol(const ShapeSet::Item& item) const {
    return item.sizes.size() == 1 && has(symbols, item.name);
  }
  std::string remedy(const std::string& name) const {
    std::vector<std::string> all = symbols;
    all.insert(all.end(), inputs.begin(), inputs.end());
    if (const std::string* near = nearest_name(all, name)) return fmt::format("did you mean '{}'?", *near);
    return symbols.empty() ? fmt::format("the model's dimensions have no names; its inputs are {}",
                                         fmt::join(inputs, ", "))
                           : fmt::format("the model's dimensions are {}; its inputs are {}",
                                         fmt::join(symbols, ", "), fmt::join(inputs, ", "));
  }
};

std::string flag(const ShapeSet& set) { return fmt::format("--shapes \"{}\"", set.text); }

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) {
  int64_t n = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  return fault == std::errc() && end == text.data() + text.size() && n >= 0 ? std::optional(n) : std::nullopt;
}

std::vector<ShapeSet> parse_shape_sets(std::string_view text) {
  std::vector<ShapeSet> sets;
  std::vector<Piece> pieces = Piece{text, 0}.split(';');
  // A semicolon may end the list.
  if (pieces.size() > 1 && pieces.back().text.empty()) pieces.pop_back();
  for (const Piece& piece : pieces) {
    if (piece.text.empty()) piece.fail("a set is empty");
    sets.push_back(parse_set(piece));
  }
  return sets;
}

std::vector<LoweringOptions> options_of_sets(const ImportedModel& model, const LoweringOptions& options,
                                             const std::vector<ShapeSet>& sets, Diagnostics& diagnostics) {
  if (sets.empty()) return {options};
  const ModelNames names(model, options);
  std::set<std::string> given;  // by any set
  for (const ShapeSet& set : sets)
    for (const ShapeSet::Item& item : set.items) given.insert(item.name);
  std::vector<LoweringOptions> result;
  for (const ShapeSet& set : sets) {
    LoweringOptions& own = result.emplace_back(options);
    for (const ShapeSet::Item& item : set.items) {
      const auto refuse = [&](std::string what, std::string remedy) {
        diagnostics.refuse("", "", fmt::format("{}: {}", flag(set), what), std::move(remedy));
      };
      if (names.is_symbol(item)) {
        if (options.dims.count(item.name) != 0 || options.ranges.count(item.name) != 0)
          refuse(fmt::format("--dim gives dimension '{}' a size as well", item.name),
                 "remove one of the two");
        own.dims[item.name] = item.sizes[0];
      } else if (ModelNames::has(names.inputs, item.name)) {
        if (options.shapes.count(item.name) != 0)
          refuse(fmt::format("--shape gives input '{}' a shape as well", item.name), "remove one of the two");
        own.shapes[item.name] = item.sizes;
      } else if (item.sizes.size() > 1 && ModelNames::has(names.symbols, item.name)) {
        refuse(fmt::format("dimension '{}' has {} sizes", item.name, item.sizes.size()), "give one");
      } else {
        refuse(fmt::format("the model has no dimension or input '{}'", item.name), names.remedy(item.name));
      }
    }
    for (const std::string& name : given)
      if (std::none_of(set.items.begin(), set.items.end(),
                       [&](const ShapeSet::Item& item) { return item.name == name; }))
        diagnostics.refuse(
            "", "", fmt::format("{}: '{}' has no size here, but it has one in another set", flag(set), name),
            "give it in every set, or in none and with --dim or --shape");
  }
  return result;
}

void attribute_to_sets(const ImportedModel& model, const LoweringOptions& options,
                       std::vector<SettledDim>& dims) {
  using By = SettledDim::By;
  const auto has_symbol = [](const ImportedValueInfo& input, const std::string& symbol) {
    return std::any_of(input.dims.begin(), input.dims.end(),
                       [&](const ImportedDim& dim) { return dim.symbol == symbol; });
  };
  for (SettledDim& dim : dims) {
    if (dim.by == By::kDim && options.dims.count(dim.symbol) == 0 && options.ranges.count(dim.symbol) == 0)
      dim.by = By::kShapes;
    if (dim.by != By::kShape || options.shapes.count(dim.input) != 0) continue;
    // The shape of another input may have given its dimension's name a size.
    const bool by_another =
        !dim.symbol.empty() &&
        std::any_of(model.graph.inputs.begin(), model.graph.inputs.end(), [&](const ImportedValueInfo& i) {
          return options.shapes.count(i.name) != 0 && has_symbol(i, dim.symbol);
        });
    if (!by_another) dim.by = By::kShapes;
  }
}

namespace {

// The states of a set are those of the first one: their memory is the same.
void check_states(const Graph& first, const ShapeSet& first_set, const Graph& graph, const ShapeSet& set,
                  Diagnostics& diagnostics) {
  const auto type_of = [](const Graph& of, const GraphState& state) {
    const Value& v = of.value(of.inputs[state.input]);
    return to_string(v.dtype, v.dims);
  };
  const auto find = [](const Graph& in, const GraphState& wanted) -> const GraphState* {
    for (const GraphState& s : in.states)
      if (s.input_name == wanted.input_name && s.output_name == wanted.output_name) return &s;
    return nullptr;
  };
  const auto refuse = [&](const GraphState& state, std::string why, std::string remedy) {
    diagnostics.refuse("", "", fmt::format("--state {}={}: {}", state.output_name, state.input_name, why),
                       std::move(remedy));
  };
  // --state auto takes pairs of equal shapes, which may be others in each set.
  const auto each_has = [&](const Graph& a, const Graph& b, const ShapeSet& without) {
    for (const GraphState& s : a.states)
      if (find(b, s) == nullptr)
        refuse(s, fmt::format("the two are not of one shape with {}", flag(without)),
               "name the states of all sets with --state OUT=IN instead of auto");
  };
  each_has(first, graph, set);
  each_has(graph, first, first_set);
  for (const GraphState& s : first.states)
    if (const GraphState* other = find(graph, s);
        other != nullptr && type_of(first, s) != type_of(graph, *other))
      refuse(
          s,
          fmt::format("the state is {} with {} and {} with {}", type_of(first, s), flag(first_set),
                      type_of(graph, *other), flag(set)),
          "give it one size in all sets (a cache of its greatest length, for example), or convert each set "
          "into a file of its own");
}

}  // namespace

void check_sets(const std::vector<Graph>& graphs, const std::vector<ShapeSet>& sets,
                Diagnostics& diagnostics) {
  const auto same = [](const Graph& a, const std::vector<ValueId>& x, const Graph& b,
                       const std::vector<ValueId>& y, bool dims) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](ValueId i, ValueId j) {
      const Value &v = a.value(i), &w = b.value(j);
      return v.name == w.name && v.dtype == w.dtype && (!dims || v.dims == w.dims);
    });
  };
  for (size_t i = 0; i < graphs.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const Graph &a = graphs[k], &b = graphs[i];
      if (same(a, a.inputs, b, b.inputs, true))
        diagnostics.refuse(
            "", "",
            fmt::format("{}: the inputs have the same shapes as with \"{}\"", flag(sets[i]), sets[k].text),
            "give each set once");
      else if (k == 0 && (!same(a, a.inputs, b, b.inputs, false) || !same(a, a.outputs, b, b.outputs, false)))
        diagnostics.refuse("", "",
                           fmt::format("{}: the inputs or outputs have other types than with \"{}\"",
                                       flag(sets[i]), sets[k].text),
                           "convert this set into a file of its own");
      else if (k == 0)
        check_states(a, sets[k], b, sets[i], diagnostics);
    }
}

}  // namespace sinter::convert

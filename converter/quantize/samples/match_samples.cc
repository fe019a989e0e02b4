// Matches arrays with inputs, and reports the faults of arrays that do not fit any input.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "converter/diagnostics/nearest_name.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/samples/sample_streams.h"

namespace sinter::convert::detail {
namespace {

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", n);
  return text;
}

bool accepts(const Dims& array, const Dims& sample, Layout layout) {
  if (layout != Layout::kSingle && stacked_samples(array, sample)) return true;
  if (layout == Layout::kStack) return false;
  // One sample: in the model's shape, or with or without an axis of one in front.
  if (array == sample) return true;
  const auto behind = [](const Dims& longer, const Dims& shorter) {
    return longer.size() == shorter.size() + 1 && longer[0] == 1 &&
           std::equal(shorter.begin(), shorter.end(), longer.begin() + 1);
  };
  return behind(array, sample) || behind(sample, array);
}

const Dims& minima_of(const SampleInput& input) { return input.minima.empty() ? input.dims : input.minima; }
std::string size_text(const SampleInput& input, size_t axis) {
  return range_text(minima_of(input)[axis], input.dims[axis]);
}

// The input as the array's samples have it: bounded dims have the array's sizes where these are in range.
SampleInput sized(SampleInput input, const ArrayFact& a) {
  if (input.minima.empty() || a.dims.size() < input.dims.size() || a.dims.size() > input.dims.size() + 1)
    return input;
  const size_t shift = a.dims.size() - input.dims.size();
  for (size_t axis = 0; axis < input.dims.size(); ++axis)
    if (const int64_t size = a.dims[axis + shift]; size >= input.minima[axis] && size < input.dims[axis])
      input.dims[axis] = size;
  return input;
}

std::string expected(const SampleInput& input, Layout layout) {
  const std::string own = to_string(input.dtype, minima_of(input), input.dims);
  if (layout == Layout::kSingle) return own;
  const bool replaces = !input.dims.empty() && input.dims[0] == 1;
  std::string stack = "[N";
  for (size_t i = replaces ? 1 : 0; i < input.dims.size(); ++i) stack += "," + size_text(input, i);
  return fmt::format("{}, so N samples are {}{}]", own, dtype_name(input.dtype), stack);
}

class Matcher {
 public:
  Matcher(const std::vector<ArrayFact>& arrays, const std::vector<SampleInput>& inputs, Layout layout)
      : arrays_(arrays), declared_(inputs), inputs_(inputs), layout_(layout) {}

  Matched run() {
    result_.array.assign(inputs_.size(), -1);
    for (size_t i = 0; i < inputs_.size(); ++i) result_.array[i] = find(inputs_[i].name);
    if (inputs_.size() == 1 && arrays_.size() == 1 && arrays_[0].name.empty()) result_.array[0] = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (result_.array[i] >= 0)
        inputs_[i] = sized(declared_[i], arrays_[static_cast<size_t>(result_.array[i])]);
      result_.dims.push_back(inputs_[i].dims);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (result_.array[i] < 0) {
        missing(inputs_[i]);
        continue;
      }
      const ArrayFact& a = arrays_[static_cast<size_t>(result_.array[i])];
      if (!a.problem.empty()) {
        problem(a.problem);
        continue;
      }
      if (!filling(a.dtype, inputs_[i])) wrong_type(inputs_[i], a);
      if (!accepts(a.dims, inputs_[i].dims, layout_)) wrong_shape(inputs_[i], a);
    }
    named_dims();
    if (result_.problems.empty()) count();
    return std::move(result_);
  }

 private:
  int find(const std::string& name) const {
    for (size_t i = 0; i < arrays_.size(); ++i)
      if (arrays_[i].name == name) return static_cast<int>(i);
    return -1;
  }
  bool is_input(const std::string& name) const {
    return std::any_of(inputs_.begin(), inputs_.end(), [&](const SampleInput& i) { return i.name == name; });
  }
  void problem(std::string text) { result_.problems.push_back(std::move(text)); }

  void missing(const SampleInput& input) {
    std::vector<std::string> names, others;
    for (const ArrayFact& a : arrays_) {
      names.push_back(a.name);
      if (!is_input(a.name)) others.push_back(a.name);
    }
    std::string text = fmt::format("input '{}' ({}) is missing; the data has {}", input.name,
                                   expected(input, layout_), names.empty() ? "no arrays" : quoted(names));
    const auto nearest = std::min_element(others.begin(), others.end(), [&](const auto& a, const auto& b) {
      return edit_distance(a, input.name) < edit_distance(b, input.name);
    });
    if (nearest != others.end()) {
      const ArrayFact& a = arrays_[static_cast<size_t>(find(*nearest))];
      const bool near = edit_distance(a.name, input.name) <= std::max<size_t>(2, input.name.size() / 3);
      // The only one left that would do is meant as well.
      const bool only = others.size() == 1 && filling(a.dtype, input) && accepts(a.dims, input.dims, layout_);
      if (near || only) text += fmt::format("; if '{}' is meant, store it as '{}'", a.name, input.name);
    }
    problem(std::move(text));
  }

  void wrong_type(const SampleInput& input, const ArrayFact& a) {
    std::string text = fmt::format("input '{}' is {} but the model takes {}", input.name,
                                   to_string(a.dtype, a.dims), expected(input, layout_));
    const std::string name = dtype_name(input.dtype);
    if (byte_width(input.dtype) != 0 && input.dtype != DType::kBFloat16 && !is_float8(input.dtype)) {
      text += fmt::format("; store it with .astype(numpy.{})", input.dtype == DType::kBool ? "bool_" : name);
      if (!is_float(a.dtype) && is_float(input.dtype))
        text += ", after the scaling that the model was trained with";
    }
    problem(std::move(text));
  }

  void wrong_shape(const SampleInput& input, const ArrayFact& a) {
    std::string text = fmt::format("input '{}' is {} but the model takes {}", input.name,
                                   to_string(a.dtype, a.dims), expected(input, layout_));
    const std::string hint = shape_hint(input, a);
    problem(hint.empty() ? text : text + "; " + hint);
  }

  std::string shape_hint(const SampleInput& input, const ArrayFact& a) const {
    const Dims& want = input.dims;
    if (a.dims.empty())
      return fmt::format(
          "a single number (rank 0) is not a stack: numpy.full({}, value) gives one for N samples",
          want.empty() ? "N" : fmt::format("(N, {})", fmt::join(want, ", ")));
    if (a.dims == want) return "this is one sample: add a leading axis, x[numpy.newaxis]";
    if (const std::string order = order_hint(input, a.dims); !order.empty()) return order;
    if (const std::string open = symbol_hint(input, a); !open.empty()) return open;
    // As many elements a sample, only differently arranged.
    int64_t rest = 1;
    for (size_t i = 1; i < a.dims.size(); ++i) rest *= a.dims[i];
    if (rest != element_count(want)) return {};
    const bool flat = without_ones({a.dims.begin() + 1, a.dims.end()}).size() <= 1;
    return fmt::format("the sizes agree: x.reshape(-1, {}){}", fmt::join(sample_dims(input), ", "),
                       flat ? "" : ", if the numbers are stored in this order");
  }

  // A sample's dims in a stack, behind the axis of the samples.
  static Dims sample_dims(const SampleInput& input) {
    const Dims& want = input.dims;
    return {want.begin() + (!want.empty() && want[0] == 1 ? 1 : 0), want.end()};
  }
  static Dims without_ones(Dims dims) {
    std::erase(dims, 1);
    return dims;
  }

  // The change by which an array becomes a stack that has the same axes in another order, or other axes of
  // one; empty: it has other axes.
  static std::string order_hint(const SampleInput& input, const Dims& array) {
    const Dims theirs = sample_dims(input), wanted = without_ones(theirs);
    if (wanted.empty()) return {};
    for (const bool stack : {true, false}) {
      const Dims own(array.begin() + (stack ? 1 : 0), array.end());
      const Dims found = without_ones(own);
      if (found.size() != wanted.size() || !std::is_permutation(found.begin(), found.end(), wanted.begin()))
        continue;
      const std::vector<size_t> order = order_of(found, wanted);
      const bool same = std::is_sorted(order.begin(), order.end());
      const std::string shape = fmt::format("{}", fmt::join(theirs, ", "));
      // Axes of one may move without moving a number.
      if (same)
        return stack ? fmt::format("the sizes agree: x.reshape(-1, {})", shape)
                     : fmt::format("this is one sample: x.reshape(1, {})", shape);
      std::string axes = stack ? "0" : "";
      std::vector<size_t> ones;
      for (const size_t axis : order)
        axes += fmt::format("{}{}", axes.empty() ? "" : ", ", axis + (stack ? 1 : 0));
      for (size_t i = 0; i < own.size(); ++i)
        if (own[i] == 1) ones.push_back(i + (stack ? 1 : 0));
      const std::string squeezed = ones.empty()       ? ""
                                   : ones.size() == 1 ? fmt::format(".squeeze({})", ones[0])
                                                      : fmt::format(".squeeze(({}))", fmt::join(ones, ", "));
      const bool last = order[0] == order.size() - 1;
      return fmt::format("{}: x{}.transpose({}){}",
                         !stack ? "this is one sample, with its axes in another order"
                         : last ? "channels are last"
                         : order[0] == 1 && order.back() == 0 ? "channels are first"
                                                              : "the axes are in another order",
                         squeezed, axes,
                         !stack             ? fmt::format(".reshape(1, {})", shape)
                         : theirs == wanted ? ""
                                            : fmt::format(".reshape(-1, {})", shape));
    }
    return {};
  }
  // found[order[i]] == wanted[i]. Where sizes repeat, the channels alone move, if that fits.
  static std::vector<size_t> order_of(const Dims& found, const Dims& wanted) {
    std::vector<size_t> order(found.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto fits = [&] {
      for (size_t i = 0; i < order.size(); ++i)
        if (found[order[i]] != wanted[i]) return false;
      return true;
    };
    if (fits()) return order;
    std::rotate(order.begin(), order.end() - 1, order.end());  // from last to first
    if (fits()) return order;
    std::iota(order.begin(), order.end(), size_t{0});
    std::rotate(order.begin(), order.begin() + 1, order.end());  // from first to last
    if (fits()) return order;
    std::vector<bool> used(found.size(), false);
    for (size_t i = 0; i < wanted.size(); ++i)
      for (size_t k = 0; k < found.size(); ++k)
        if (!used[k] && found[k] == wanted[i]) {
          order[i] = k, used[k] = true;
          break;
        }
    return order;
  }

  // Which of the array's axes correspond to which of the input's.
  static std::optional<size_t> shift_of(const SampleInput& input, const ArrayFact& a) {
    if (a.dims.size() == input.dims.size() + 1) return 1;
    if (a.dims.size() == input.dims.size()) return 0;
    return std::nullopt;
  }

  std::string symbol_hint(const SampleInput& input, const ArrayFact& a) const {
    const auto shift = shift_of(input, a);
    if (!shift || input.symbols.size() != input.dims.size()) return {};
    const bool batch = *shift == 0;
    for (size_t i = batch ? 1 : 0; i < input.dims.size(); ++i) {
      const int64_t d = a.dims[i + *shift];
      if (d == input.dims[i] || input.symbols[i].empty()) continue;
      const bool range = !input.minima.empty() && input.minima[i] < input.dims[i];
      return fmt::format("its dimension '{}' is {} in this conversion: use --dim {}={} for this data",
                         input.symbols[i], size_text(input, i), input.symbols[i],
                         range ? range_text(std::min(d, input.minima[i]), std::max(d, input.dims[i]))
                               : fmt::format("{}", d));
    }
    return {};
  }

  // A named dimension has one size in all inputs that share it.
  void named_dims() {
    std::map<std::string, std::pair<const SampleInput*, int64_t>> sizes;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (result_.array[i] < 0) continue;
      const SampleInput& input = inputs_[i];
      const ArrayFact& a = arrays_[static_cast<size_t>(result_.array[i])];
      const auto shift = shift_of(input, a);
      if (!shift || input.symbols.size() != input.dims.size()) continue;
      for (size_t axis = 0; axis < input.dims.size(); ++axis) {
        const std::string& symbol = input.symbols[axis];
        // The stack's own axis is counted below.
        if (symbol.empty() || (axis == 0 && *shift == 0 && input.dims[0] == 1)) continue;
        const auto [it, fresh] = sizes.emplace(symbol, std::pair(&input, a.dims[axis + *shift]));
        if (fresh || it->second.second == a.dims[axis + *shift]) continue;
        problem(fmt::format(
            "inputs '{}' and '{}' share the dimension '{}', but it is {} in one and {} in the other",
            it->second.first->name, input.name, symbol, it->second.second, a.dims[axis + *shift]));
      }
    }
  }

  void count() {
    if (inputs_.empty()) return;
    bool stacks = layout_ != Layout::kSingle;
    for (size_t i = 0; i < inputs_.size(); ++i)
      stacks &=
          stacked_samples(arrays_[static_cast<size_t>(result_.array[i])].dims, inputs_[i].dims).has_value();
    result_.single = !stacks;
    result_.count = 1;
    if (!stacks) {
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (const ArrayFact& a = arrays_[static_cast<size_t>(result_.array[i])];
            !accepts(a.dims, inputs_[i].dims, Layout::kSingle))
          problem(fmt::format("input '{}' ({}) is a stack of samples, but others hold one", inputs_[i].name,
                              array_text(i)));
      return;
    }
    const auto samples = [&](size_t i) { return arrays_[static_cast<size_t>(result_.array[i])].dims[0]; };
    result_.count = samples(0);
    for (size_t i = 1; i < inputs_.size(); ++i)
      if (samples(i) != result_.count)
        problem(fmt::format(
            "input '{}' ({}) has {} sample{} but '{}' ({}) has {}; every input needs one per sample",
            inputs_[i].name, array_text(i), samples(i), samples(i) == 1 ? "" : "s", inputs_[0].name,
            array_text(0), result_.count));
  }
  std::string array_text(size_t input) const {
    const ArrayFact& a = arrays_[static_cast<size_t>(result_.array[input])];
    return to_string(a.dtype, a.dims);
  }

  const std::vector<ArrayFact>& arrays_;
  const std::vector<SampleInput>& declared_;
  std::vector<SampleInput> inputs_;  // with the sizes of the arrays
  const Layout layout_;
  Matched result_;
};

}  // namespace

Matched match_arrays(const std::vector<ArrayFact>& arrays, const std::vector<SampleInput>& inputs,
                     Layout layout) {
  return Matcher(arrays, inputs, layout).run();
}

}  // namespace sinter::convert::detail

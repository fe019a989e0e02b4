#include "converter/passes/proofs/equal_elements.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>
#include <utility>

#include "converter/flow/element_map.h"
#include "converter/ir/op_traits.h"

namespace sinter::convert {
namespace {

constexpr int kSourceDepth = 32;
// Longer constants and lists are not examined.
constexpr int64_t kMostListed = int64_t{1} << 22;

using PlaceList = std::vector<int64_t>;

// SourceText writes a text that identifies the source of some elements: equal texts are equal numbers.
class SourceText {
 public:
  SourceText(Editor& e, bool negated) : e_(e), negated_(negated) {}

  std::string of(ValueId id, const PlaceList& places, int depth) {
    const Value& v = e_.value(id);
    if (v.constant) return constant(id, places);
    const int n = e_.producer(id);
    if (n < 0 || depth == 0 || places.empty()) return leaf(id, places);
    const Node& node = e_.node(n);
    const auto operand = [&](size_t i) {
      const ElementSources sources(e_.graph(), node);
      PlaceList read;
      for (const int64_t place : places) read.push_back(*sources.place_in(i, place));
      return of(node.inputs[i], read, depth - 1);
    };
    switch (node.op()) {
      case Op::kNeg:
        if (!is_float(v.dtype)) return leaf(id, places);
        negated_ = !negated_;
        return operand(0);
      case Op::kCast:
        // Rounding is symmetric, the ranges of integer types are not.
        if (negated_ && !(is_float(v.dtype) && is_float(e_.value(node.inputs[0]).dtype)))
          return leaf(id, places);
        return fmt::format("cast{}({})", static_cast<int>(v.dtype), operand(0));
      case Op::kTrig: {
        const bool sign = std::exchange(negated_, false);
        return fmt::format("{}trig{}({})", sign ? "-" : "", node.as<TrigAttrs>()->fn, operand(0));
      }
      case Op::kMul:
        for (size_t i = 0; i < 2 && unclamped(node.as<MulAttrs>()); ++i)
          if (const auto scale = e_.scalar(node.inputs[i]); scale && is_float(v.dtype))
            return fmt::format("{:a}*({})", *scale, operand(1 - i));
        return leaf(id, places);
      default:
        return moves(node.attrs) ? moved(node, id, places, depth) : leaf(id, places);
    }
  }

 private:
  static std::string bytes(const auto& items) {
    return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof items[0]};
  }
  std::string leaf(ValueId id, const PlaceList& places) const {
    return fmt::format("{}%{}[{}]", negated_ ? "-" : "", id, bytes(places));
  }
  std::string constant(ValueId id, const PlaceList& places) const {
    const Constant& c = *e_.value(id).constant;
    if (c.size() > kMostListed) return leaf(id, places);
    if (is_integer(c.dtype())) {  // a double does not hold every number of 64 bits
      const std::vector<int64_t> integers = c.as_int64s();
      PlaceList numbers;
      for (const int64_t at : places) numbers.push_back(integers[static_cast<size_t>(at)]);
      return negated_ ? leaf(id, places) : fmt::format("#{}[{}]", dtype_name(c.dtype()), bytes(numbers));
    }
    const std::vector<double> items = c.as_doubles();
    std::vector<double> numbers;
    for (const int64_t at : places) {
      const double item = items[static_cast<size_t>(at)];
      numbers.push_back((negated_ ? -item : item) + 0.0);
    }
    return fmt::format("#[{}]", bytes(numbers));
  }

  std::string moved(const Node& node, ValueId id, const PlaceList& places, int depth) {
    const ElementSources sources(e_.graph(), node);
    std::vector<PlaceList> of_operand(node.inputs.size());
    std::vector<size_t> operands;
    PlaceList indices;
    const auto first_entry = [&](int64_t place) {
      return indices.push_back(place), std::optional<int64_t>(0);
    };
    for (const int64_t place : places) {
      const auto from = sources.of(place, first_entry);
      if (!from) return leaf(id, places);
      of_operand[from->operand].push_back(from->place);
      operands.push_back(from->operand);
    }
    if (!indices.empty()) {
      // Entries that the same indices name are equal if all entries of the table are.
      const std::string pattern = bytes(distinct(&of_operand[0]));
      if (!add_all_entries(node, &of_operand[0])) return leaf(id, places);
      return fmt::format("gather[{}]({})({})", pattern,
                         SourceText(e_, false).of(node.inputs[1], indices, depth - 1),
                         of(node.inputs[0], of_operand[0], depth - 1));
    }
    std::string text = fmt::format("join[{}]", bytes(operands));
    for (size_t i = 0; i < of_operand.size(); ++i) {
      if (of_operand[i].size() == places.size()) return of(node.inputs[i], of_operand[i], depth - 1);
      if (!of_operand[i].empty())
        text += "(" + SourceText(e_, negated_).of(node.inputs[i], of_operand[i], depth - 1) + ")";
    }
    return text;
  }

  // Leaves each place once, and returns which of them each was.
  static std::vector<size_t> distinct(PlaceList* places) {
    std::unordered_map<int64_t, size_t> known;
    std::vector<size_t> which;
    PlaceList once;
    for (const int64_t place : *places) {
      const auto [at, fresh] = known.emplace(place, once.size());
      if (fresh) once.push_back(place);
      which.push_back(at->second);
    }
    *places = std::move(once);
    return which;
  }
  // Adds the places of all entries of a table to those in the first entry of each axis that indices give.
  bool add_all_entries(const Node& node, PlaceList* places) const {
    const Dims& table = e_.value(node.inputs[0]).dims;
    const ElementMap map = *element_map(e_.graph(), node, 0);
    int64_t stride = 1;
    for (size_t b = table.size(); b-- > 0; stride *= table[b]) {
      if (map.axes[b].axis != AxisSource::kGiven) continue;
      const size_t count = places->size();
      if (static_cast<int64_t>(count) * table[b] > kMostListed) return false;
      for (int64_t entry = 1; entry < table[b]; ++entry)
        for (size_t i = 0; i < count; ++i) places->push_back((*places)[i] + entry * stride);
    }
    return true;
  }

  Editor& e_;
  bool negated_;
};

// Returns whether the second half of each row of a constant has the bytes of the first one.
bool equal_halves(const Constant& c) {
  const int64_t length = c.dims().empty() ? 0 : c.dims().back();
  if (length == 0 || length % 2 != 0 || bit_width(c.dtype()) % 8 != 0) return false;
  const LoadedBytes loaded = c.load();
  const size_t half = static_cast<size_t>(length / 2) * static_cast<size_t>(bit_width(c.dtype()) / 8);
  for (size_t at = 0; at + 2 * half <= loaded.bytes.size(); at += 2 * half)
    if (std::memcmp(loaded.bytes.data() + at, loaded.bytes.data() + at + half, half) != 0) return false;
  return true;
}

// Returns the operand that gives a node's result its rows, along the last axis: they are moved as a whole, or
// computed element by element. kAbsent: none does, or it is not known.
ValueId operand_of_rows(Editor& e, const Node& node) {
  const bool moved = moves_one(node.attrs);
  int operand = moved ? 0 : -1;
  for (size_t i = 0; !moved && is_elementwise(node.op()) && i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0 || e.scalar(node.inputs[i])) continue;
    if (operand >= 0) return kAbsent;
    operand = static_cast<int>(i);
  }
  if (operand < 0) return kAbsent;
  const ValueId from = node.inputs[static_cast<size_t>(operand)];
  const auto map = element_map(e.graph(), node, static_cast<size_t>(operand));
  const Dims &own = e.value(from).dims, &result = e.value(node.outputs[0]).dims;
  if (!map || own.empty() || result.empty() || own.back() != result.back()) return kAbsent;
  if (map->is_flat) return from;
  const int last = static_cast<int>(result.size()) - 1;
  if (!map->axes.back().is_in_place() || map->axes.back().axis != last) return kAbsent;
  // Indices may name another row for each element.
  const auto index = map->following(AxisSource::kGiven) < 0 ? std::nullopt : element_map(e.graph(), node, 1);
  return index && index->following(last) >= 0 ? kAbsent : from;
}

}  // namespace

ElementList every_second_of(Editor& e, ValueId id, int64_t phase, bool negated) {
  ElementList list{id, {}, negated};
  for (int64_t i = phase, size = element_count(e.value(id).dims); i < size; i += 2) list.places.push_back(i);
  return list;
}

bool equal_elements(Editor& e, const ElementList& a, const ElementList& b) {
  const auto text = [&](const ElementList& list) {
    return SourceText(e, list.negated).of(list.id, list.places, kSourceDepth);
  };
  return text(a) == text(b);
}

bool equal_halves(Editor& e, ValueId id) {
  // Tables of cosines have a row for each position: their rows are not listed.
  for (int n = e.producer(id), depth = kSourceDepth; n >= 0 && depth > 0; n = e.producer(id), --depth) {
    const ValueId from = operand_of_rows(e, e.node(n));
    if (from < 0) break;
    id = from;
  }
  if (e.value(id).constant) return equal_halves(*e.value(id).constant);
  const Dims& dims = e.value(id).dims;
  const int64_t length = dims.empty() ? 0 : dims.back();
  if (length == 0 || length % 2 != 0 || element_count(dims) > kMostListed) return false;
  ElementList first{id, {}}, second{id, {}};
  for (int64_t i = 0, count = element_count(dims); i < count; ++i)
    (i % length < length / 2 ? first : second).places.push_back(i);
  return equal_elements(e, first, second);
}

}  // namespace sinter::convert

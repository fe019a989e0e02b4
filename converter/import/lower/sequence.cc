// Sequences of tensors. If their number and positions are known at conversion, they are lists of values that
// never reach the device (unoptimised exports split values with them); else stacks (stack.h).
#include <algorithm>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/stack.h"

namespace sinter::convert {
namespace {

// The list of input i; null: refused.
const std::vector<ValueId>* list_of(NodeLowering& n, size_t i) {
  const std::vector<ValueId>* items = n.sequence(i);
  if (items == nullptr) n.refuse("input {} must be a sequence whose tensors are known at conversion", i);
  return items;
}

// The position that input i names among `count`, or `fallback` where it is absent.
std::optional<size_t> position(NodeLowering& n, size_t i, int64_t count, int64_t fallback) {
  int64_t at = fallback;
  if (n.has_input(i)) {
    const auto given = n.constant_int(i);
    if (!given) return std::nullopt;
    at = *given < 0 ? *given + count : *given;
    if (at < 0 || at >= count) {
      n.refuse("position {} of a sequence of {}", *given, count);
      return std::nullopt;
    }
  }
  return static_cast<size_t>(at);
}

bool lower_empty(NodeLowering& n) {
  n.ignore_attr("dtype");
  return n.output_sequence(0, {});
}

bool lower_construct(NodeLowering& n) {
  std::vector<ValueId> items;
  for (size_t i = 0; i < n.input_count(); ++i) {
    items.push_back(n.input(i));
    if (items.back() == kAbsent) return n.refuse("input {} is absent", i);
  }
  return n.output_sequence(0, items);
}

bool lower_at(NodeLowering& n) {
  const bool runs = n.has_input(1) && !n.constant(n.input(1));
  if (const ValueId stack = stack_of(n, 0, runs); stack != kAbsent)
    return n.has_input(1) ? stack_at(n, stack, n.input(1)) : n.refuse("has no position");
  const auto* items = list_of(n, 0);
  if (items == nullptr) return false;
  if (!n.has_input(1)) return n.refuse("has no position");
  const auto at = position(n, 1, static_cast<int64_t>(items->size()), 0);
  return at && n.output(0, (*items)[*at]);
}

bool lower_insert(NodeLowering& n) {
  const bool runs = n.has_input(2) && !n.constant(n.input(2));
  if (const ValueId stack = stack_of(n, 0, runs); stack != kAbsent)
    return stack_insert(n, stack, n.input(1), n.input(2));
  const auto* given = list_of(n, 0);
  if (given == nullptr) return false;
  std::vector<ValueId> items = *given;
  const ValueId tensor = n.input(1);
  if (tensor == kAbsent) return n.refuse("has no tensor to insert");
  const auto count = static_cast<int64_t>(items.size());
  auto at = static_cast<size_t>(count);
  if (n.has_input(2)) {
    const auto where = n.constant_int(2);
    if (!where) return false;
    const int64_t p = *where < 0 ? *where + count : *where;
    if (p < 0 || p > count) return n.refuse("position {} of a sequence of {}", *where, count);
    at = static_cast<size_t>(p);
  }
  items.insert(items.begin() + static_cast<ptrdiff_t>(at), tensor);
  return n.output_sequence(0, items);
}

bool lower_erase(NodeLowering& n) {
  const bool runs = n.has_input(1) && !n.constant(n.input(1));
  if (const ValueId stack = stack_of(n, 0, runs); stack != kAbsent) return stack_erase(n, stack, n.input(1));
  const auto* given = list_of(n, 0);
  if (given == nullptr) return false;
  std::vector<ValueId> items = *given;
  if (items.empty()) return n.refuse("the sequence is empty");
  const auto count = static_cast<int64_t>(items.size());
  const auto at = position(n, 1, count, count - 1);
  if (!at) return false;
  items.erase(items.begin() + static_cast<ptrdiff_t>(*at));
  return n.output_sequence(0, items);
}

bool lower_length(NodeLowering& n) {
  if (const ValueId stack = stack_of(n, 0, false); stack != kAbsent) {
    Lengths& lengths = n.parent().lengths();
    return n.output(0, lengths.value(lengths.of_axis(stack, 0)));
  }
  const auto* items = list_of(n, 0);
  if (items == nullptr) return false;
  return n.output(0, n.int64(static_cast<int64_t>(items->size())));
}

// split: a number (the last part may be smaller), a size for each part, or absent: parts of one, which lose
// the axis without keepdims. The standard ignores keepdims where split is given; but exporters write unbind
// as a split by the number 1 without it, and onnxruntime follows them.
bool lower_split_to_sequence(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", 0);
  const bool keepdims = n.attr_int("keepdims", 1) != 0;
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  if (!n.parent().lengths().known(n.parent().lengths().of_axis(x, axis)))
    return stack_split(n, x, axis, keepdims);
  const int64_t length = n.dims(x)[static_cast<size_t>(axis)];
  constexpr int64_t kMostParts = 4096;
  const bool listed = n.has_input(1) && n.rank(n.input(1)) > 0;
  std::vector<int64_t> sizes;
  int64_t part = 1;
  if (n.has_input(1)) {
    const auto given = n.constant_ints(1);
    if (!given) return false;
    if (listed)
      sizes = *given;
    else
      part = given->front();
    if (static_cast<int64_t>(sizes.size()) > kMostParts)
      return n.refuse("{} parts, more than {}", sizes.size(), kMostParts);
  }
  if (!listed) {
    if (part < 1) return n.refuse("parts of {} elements", part);
    if (length / part > kMostParts) return n.refuse("{} parts, more than {}", length / part, kMostParts);
    for (int64_t at = 0; at < length; at += part) sizes.push_back(std::min(part, length - at));
  }
  const bool drops = !n.has_input(1) || (!listed && part == 1);
  std::vector<ValueId> items;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > length - start) break;
    ValueId item = n.slice(x, axis, start, size);
    if (!keepdims && drops) {
      Dims dims = n.dims(x);
      dims.erase(dims.begin() + axis);
      item = n.reshape(item, dims);
    }
    items.push_back(item);
    start += size;
  }
  if (start != length || items.size() != sizes.size())
    return n.refuse("sizes [{}] do not add up to {}", fmt::join(sizes, ","), length);
  return n.output_sequence(0, items);
}

bool lower_concat_from_sequence(NodeLowering& n) {
  if (const ValueId stack = stack_of(n, 0, false); stack != kAbsent)
    return stack_joined(n, stack, n.attr_int("axis", 0), n.attr_int("new_axis", 0) != 0);
  const auto* given = list_of(n, 0);
  if (given == nullptr) return false;
  std::vector<ValueId> items = *given;
  if (items.empty()) return n.refuse("the sequence is empty");
  int64_t axis = n.attr_int("axis", 0);
  const bool fresh = n.attr_int("new_axis", 0) != 0;
  if (!n.normalize_axis(&axis, n.rank(items[0]) + (fresh ? 1 : 0))) return false;
  for (size_t i = 1; i < items.size(); ++i) {
    if (n.rank(items[i]) != n.rank(items[0]))
      return n.refuse_shapes("tensors {} and {} have different ranks", to_string(n.dims(items[0])),
                             to_string(n.dims(items[i])));
  }
  if (!n.settle_tensors(&items)) return false;
  if (fresh)
    for (ValueId& item : items) item = n.unsqueeze(item, axis);
  return n.output(0, joined(n, std::move(items), axis));
}

}  // namespace

std::span<const OnnxOperator> sequence_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"SequenceEmpty", 11, lower_empty, "", kNoInput},
      {"SequenceConstruct", 11, lower_construct, "", kTakesBounded | kNoInput},
      {"SequenceAt", 11, lower_at, "", kTakesBounded | kTakesSequence},
      {"SequenceInsert", 11, lower_insert, "", kTakesBounded | kTakesSequence},
      {"SequenceErase", 11, lower_erase, "", kTakesBounded | kTakesSequence},
      {"SequenceLength", 11, lower_length, "", kTakesSequence},
      {"SplitToSequence", 11, lower_split_to_sequence, "", kTakesBounded},
      {"ConcatFromSequence", 11, lower_concat_from_sequence, "", kTakesBounded | kTakesSequence},
  };
  return kRules;
}

}  // namespace sinter::convert

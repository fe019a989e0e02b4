#include "converter/passes/pattern.h"

#include <algorithm>
#include <utility>

namespace sinter::convert {

Pattern::Pattern(Capture& capture)
    : match_([&capture](Editor&, ValueId id, const Then& then) {
        if (id < 0) return false;
        if (capture.id != kAbsent) return capture.id == id && then();
        capture.id = id;
        const bool accepted = then();
        capture.id = kAbsent;
        return accepted;
      }) {}

Pattern::Pattern(double wanted) : Pattern(number([wanted](double v) { return v == wanted; })) {}

Pattern Pattern::where(std::function<bool(const Node& node)> test) const {
  return Match([shape = *this, test = std::move(test)](Editor& e, ValueId id, const Then& then) {
    const int n = e.producer(id);
    return n >= 0 && shape.match(e, id, [&] { return test(e.node(n)) && then(); });
  });
}

Pattern Capture::operator()(const Pattern& shape) {
  return Pattern::Match([shape, whole = Pattern(*this)](Editor& e, ValueId id, const Pattern::Then& then) {
    return whole.match(e, id, [&] { return shape.match(e, id, then); });
  });
}

Pattern any_value() {
  return Pattern::Match([](Editor&, ValueId id, const Pattern::Then& then) { return id >= 0 && then(); });
}

Pattern number(std::function<bool(double)> test, double* value) {
  return Pattern::Match([test = std::move(test), value](Editor& e, ValueId id, const Pattern::Then& then) {
    const auto v = e.uniform(id);
    if (!v || !test(*v)) return false;
    if (value == nullptr) return then();
    const double before = std::exchange(*value, *v);
    const bool accepted = then();
    *value = before;
    return accepted;
  });
}

Pattern once(Pattern shape) {
  return Pattern::Match([shape = std::move(shape)](Editor& e, ValueId id, const Pattern::Then& then) {
    return e.single_read(id) && shape.match(e, id, then);
  });
}

Pattern first_of(std::vector<Pattern> shapes) {
  return Pattern::Match([shapes = std::move(shapes)](Editor& e, ValueId id, const Pattern::Then& then) {
    return std::any_of(shapes.begin(), shapes.end(),
                       [&](const Pattern& shape) { return shape.match(e, id, then); });
  });
}

namespace {

// Matches operands from the i-th on; `inputs` are in the order of the patterns.
bool match_operands(Editor& e, const std::vector<Pattern>& operands, const std::vector<ValueId>& inputs,
                    size_t i, const Pattern::Then& then) {
  if (i == operands.size()) return then();
  return operands[i].match(e, inputs[i], [&] { return match_operands(e, operands, inputs, i + 1, then); });
}

}  // namespace

Pattern operation(bool (*is)(const Node& node), std::vector<Pattern> operands, bool commutes) {
  return Pattern::Match(
      [is, operands = std::move(operands), commutes](Editor& e, ValueId id, const Pattern::Then& then) {
        const int n = e.producer(id);
        if (n < 0 || !is(e.node(n)) || e.node(n).outputs.size() != 1) return false;
        std::vector<ValueId> inputs = e.node(n).inputs;
        while (inputs.size() > operands.size() && inputs.back() == kAbsent) inputs.pop_back();
        if (inputs.size() != operands.size()) return false;
        if (match_operands(e, operands, inputs, 0, then)) return true;
        if (!commutes) return false;
        std::swap(inputs[0], inputs[1]);
        return match_operands(e, operands, inputs, 0, then);
      });
}

}  // namespace sinter::convert

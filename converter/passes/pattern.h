// Pattern: a small shape of graphs, declared once and matched at values.
//
//   Capture x;
//   const Pattern silu = commuted<MulAttrs>(x, op<SigmoidAttrs>(x));
//   silu.match(e, e.result(n), [&] { return e.replace(n, SiluAttrs{}, {x}), true; });
//
// Every way to match is tried until the function given to match() accepts it. Captures have values while that
// function runs. A pattern keeps references to its captures, which must outlive it.
#pragma once

#include <functional>
#include <vector>

#include "converter/passes/editor.h"

namespace sinter::convert {

class Pattern;

// A value of the graph that a pattern meets. A capture that a pattern names twice must meet the same value.
struct Capture {
  ValueId id = kAbsent;
  operator ValueId() const { return id; }
  // Matches what `shape` matches, and captures it.
  Pattern operator()(const Pattern& shape);
};

class Pattern {
 public:
  // The function that is called for a match; it returns false to have the next way tried.
  using Then = std::function<bool()>;
  // Calls `then` for each way in which a value matches, until it returns true; returns whether it did.
  using Match = std::function<bool(Editor& e, ValueId id, const Then& then)>;

  Pattern(Match match) : match_(std::move(match)) {}
  Pattern(Capture& capture);
  // A constant whose elements are all this number.
  Pattern(double number);

  bool match(Editor& e, ValueId id, const Then& then) const { return match_(e, id, then); }
  // Matches where the node that makes the value passes a test as well.
  Pattern where(std::function<bool(const Node& node)> test) const;

 private:
  Match match_;
};

// Any value that there is.
Pattern any_value();
// A constant whose elements are all one number that passes the test; `value` is that number.
Pattern number(std::function<bool(double)> test, double* value = nullptr);
// A value that only the matched operation reads.
Pattern once(Pattern shape);
// The first of these shapes that what follows accepts.
Pattern first_of(std::vector<Pattern> shapes);
template <class... P>
Pattern any_of(P&&... shapes) {
  return first_of({Pattern(std::forward<P>(shapes))...});
}

// The general form of op() and commuted(). `is` returns whether a node is of the operation.
Pattern operation(bool (*is)(const Node& node), std::vector<Pattern> operands, bool commutes);

template <class A>
bool is_plain(const Node& node) {
  if constexpr (requires(A a) { a.act_min; })
    return unclamped(node.as<A>());
  else
    return node.as<A>() != nullptr;
}
// A result of operation A with exactly these operands. A has one result, and does not clamp it.
template <class A, class... P>
Pattern op(P&&... operands) {
  return operation(is_plain<A>, {Pattern(std::forward<P>(operands))...}, false);
}
// The same, of two operands in either order.
template <class A, class First, class Second>
Pattern commuted(First&& first, Second&& second) {
  return operation(is_plain<A>, {Pattern(std::forward<First>(first)), Pattern(std::forward<Second>(second))},
                   true);
}

}  // namespace sinter::convert

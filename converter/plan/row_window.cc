#include "converter/plan/row_window.h"

#include <algorithm>
#include <type_traits>

namespace sinter::convert {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

RowRange RowWindow::read(RowRange out) const {
  if (transposed)
    return {std::max<int64_t>(floor_div(out.begin + pad - extent(), stride) + 1, 0),
            std::min(floor_div(out.end - 1 + pad, stride) + 1, rows)};
  return {std::max<int64_t>(out.begin * stride - pad, 0),
          std::min((out.end - 1) * stride - pad + extent(), rows)};
}

bool RowWindow::narrow(RowRange out, OpAttrs* attrs) const {
  const RowRange in = read(out);
  return std::visit(
      [&](auto& a) {
        using A = std::decay_t<decltype(a)>;
        if constexpr (kTransposedWindow<A>) {
          // Where what `in` is spread to begins and ends.
          const int64_t front = out.begin - (in.begin * stride - pad);
          const int64_t back = (in.end - 1) * stride - pad + extent() - out.end;
          if (front < 0 || a.pads.empty() || a.output_padding.empty()) return false;
          a.pads[0] = front, a.pads[a.pads.size() / 2] = std::max<int64_t>(back, 0);
          a.output_padding[0] = std::max<int64_t>(-back, 0);
        } else if constexpr (WindowAttrs<A>) {
          if (a.pads.empty()) return true;
          a.pads[0] = std::max<int64_t>(pad - out.begin * stride, 0);
          a.pads[a.pads.size() / 2] = std::max<int64_t>((out.end - 1) * stride - pad + extent() - rows, 0);
        }
        return true;
      },
      *attrs);
}

std::optional<RowWindow> row_window(const Graph& graph, const Node& node) {
  return std::visit(
      [&](const auto& a) -> std::optional<RowWindow> {
        using A = std::decay_t<decltype(a)>;
        if constexpr (WindowAttrs<A>) {
          const Dims& x = graph.value(node.inputs[0]).dims;
          const int64_t* weights = kPoolWindow<A> ? nullptr : graph.value(node.inputs[1]).dims.data();
          const int axes = static_cast<int>(x.size()) - 2;
          return RowWindow{window_axis(a, weights, axes, 0), x[1], kTransposedWindow<A>};
        } else {
          return std::nullopt;
        }
      },
      node.attrs);
}

}  // namespace sinter::convert

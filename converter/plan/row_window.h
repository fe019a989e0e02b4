// The window of a convolution, transposed convolution or pooling along the rows (axis 1): which rows of the
// operand some rows of the result are made of, and with which padding.
#pragma once

#include <optional>

#include "converter/ir/graph.h"
#include "runtime/backend/window.h"

namespace sinter::convert {

struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

struct RowWindow : WindowAxis {
  int64_t rows = 0;         // the operand has this many
  bool transposed = false;  // an operand's row goes into `kernel` rows of the result

  // Returns the rows of the operand; empty where the windows are in the padding.
  RowRange read(RowRange out) const;
  // Gives `attrs` the padding for these rows; false where the node has no form that computes these rows alone
  // from read().
  bool narrow(RowRange out, OpAttrs* attrs) const;
};

// Returns the window of a node; nullopt: it has none.
std::optional<RowWindow> row_window(const Graph& graph, const Node& node);

}  // namespace sinter::convert

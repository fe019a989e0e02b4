// Functions of one byte as tables.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Makes each chain of element-wise operations with constants, from a byte to its Quantize, one Lut with the
// same results; with a constant for each channel of a picture, a Lut for each channel. Returns the count of
// changes.
int tables_of_bytes(Graph& graph);

// Makes a Lut that only another Lut reads one table with it. Returns the count of changes.
int join_tables(Graph& graph);

}  // namespace sinter::convert

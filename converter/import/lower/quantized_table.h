// Tables of quantized numbers: the chosen rows are dequantized, not the table.
#pragma once

#include "converter/import/lowering.h"

namespace sinter::convert {

// The table's elements along `axis` that `indices` name, where `table` is a constant that was dequantized;
// kAbsent where the whole table has to be widened for a look-up.
ValueId gather_dequantized(NodeLowering& n, ValueId table, int64_t axis, ValueId indices);

}  // namespace sinter::convert

// Products of sorted rows with the matrices of their groups, as torch's grouped_mm is exported.
#pragma once

#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// Concat(Gather(x, Range(0, e1)) w1, Gather(x, Range(e1, e2)) w2, ...), where the ends of the groups are the
// running sums of a histogram, becomes the product of each row with the matrix of its group: the first one
// whose end is behind the row. Otherwise the lengths of all groups would depend on data, and a run would read
// all matrices. For a checked model.
void join_grouped_products(ImportedModel& model);

}  // namespace sinter::convert

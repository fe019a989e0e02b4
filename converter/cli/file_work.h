// The multiply-adds of a file's steps, as converter/cost/work.h counts those of a graph.
#pragma once

#include <cstdint>

#include "converter/cli/file_view.h"
#include "converter/cost/work.h"

namespace sinter::convert {

// Returns the multiply-adds of one run of the step; those of an If or Loop include its bodies.
TypedProducts multiply_adds(const FileView& view, uint32_t program, uint32_t step);
// Returns the multiply-adds of one run of the program; view.entry() is the program of the shape set.
TypedProducts multiply_adds(const FileView& view, uint32_t program);

}  // namespace sinter::convert

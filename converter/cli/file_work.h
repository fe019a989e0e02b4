// The multiply-adds of a file's steps, as converter/cost/work.h counts those of a graph.
#pragma once

#include <cstdint>

#include "converter/cli/file_view.h"
#include "converter/cost/work.h"

namespace sinter::convert {

// Of one run of the step; of an If or Loop with its bodies.
TypedProducts multiply_adds(const FileView& view, uint32_t program, uint32_t step);
// Of one run of the program: of view.entry() all of the shape set's.
TypedProducts multiply_adds(const FileView& view, uint32_t program);

}  // namespace sinter::convert

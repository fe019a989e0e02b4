// The debug segment of a file: JSON objects, one a line, about the values and nodes of the source (the type
// ledger, the fates of nodes). Most of their words occur in many lines or are names in the file, and their
// keys are few. The segment therefore has, deflated behind 8 bytes of the text's length, one JSON object:
//
//   values  strings and other values, each once. They are numbered behind the file's names: program by
//           program, the names of its values, then of its steps, each name where it occurs first
//   forms   the keys of the objects, in their order; each list of keys once
//   lines   the form of each line
//   cells   for each form and each of its keys, a list with one cell for each line of the form. A cell is
//           the number of a value, less that of the cell before it in its list (-1 before the first), or a
//           list of such differences
//
// Older files have the lines themselves, deflated in the same way.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "converter/ir/constant.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {

// Returns the segment's bytes; none for no lines. `model` has the file's names.
Bytes debug_segment(const std::string& lines, const fb::Model& model);

// Returns the objects of a segment, in the order of the lines. Throws DataError where it is damaged.
nlohmann::json debug_objects(std::span<const std::byte> segment, const fb::Model& model);

}  // namespace sinter::convert

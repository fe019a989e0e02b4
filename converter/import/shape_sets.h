// Shape sets (--shapes): one file has an entry program for each, with the constants that they have in common
// once (docs/shapes.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/import/lower.h"

namespace sinter::convert {

// A set as it was given: the size of a dimension (one number), or the complete shape of an input.
struct ShapeSet {
  struct Item {
    std::string name;
    Dims sizes;
  };
  std::string text;  // without spaces around it, for messages
  std::vector<Item> items;
};

// A size in decimal digits, at least 0; empty: the text is not one.
std::optional<int64_t> parse_size(std::string_view text);

// "batch=1,seq=16; batch=8,seq=128", or "image=1,3,64,64; image=1,3,128,128". Throws UsageError with the
// position of what is wrong; nothing is known of the model yet.
std::vector<ShapeSet> parse_shape_sets(std::string_view text);

// The options of each set: `options` and the set's sizes. Refuses, with the set, a name that the model lacks,
// a name that --dim or --shape gives as well, and a name that another set gives and this one does not. With
// no sets: `options` alone.
std::vector<LoweringOptions> options_of_sets(const ImportedModel& model, const LoweringOptions& options,
                                             const std::vector<ShapeSet>& sets, Diagnostics& diagnostics);

// Names --shapes where a set gave a size. `options`: without those of the set.
void attribute_to_sets(const ImportedModel& model, const LoweringOptions& options,
                       std::vector<SettledDim>& dims);

// Refuses sets that give all inputs the same shapes, sets whose graphs do not have the same inputs and
// outputs by name and type, and states whose shape differs between sets. `graphs`: of the sets, in their
// order.
void check_sets(const std::vector<Graph>& graphs, const std::vector<ShapeSet>& sets,
                Diagnostics& diagnostics);

}  // namespace sinter::convert

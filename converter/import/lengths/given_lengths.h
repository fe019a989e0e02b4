// --dim NAME=MIN..MAX: the lengths of inputs' bounded axes.
#pragma once

#include <map>
#include <string>

#include "converter/import/lower.h"

namespace sinter::convert {

// An int64 scalar for each range that an input has, behind the model's own inputs.
class GivenLengths {
 public:
  GivenLengths(const LoweringOptions& options, GraphLowering& lowering)
      : options_(options), lowering_(lowering) {}

  // Returns whether --dim gives a dimension of the input a range.
  bool bounds(const ImportedValueInfo& input) const;
  // Bounds the axes of `value`, which is the input.
  void bound(const ImportedValueInfo& input, ValueId value);
  // Lists them among the graph's inputs, when all of the model's are there.
  void list();

 private:
  // Null: the axis has one size.
  const DimRange* range_of(const ImportedValueInfo& input, size_t axis) const;
  ValueId length_of(const std::string& name, const DimRange& range);

  const LoweringOptions& options_;
  GraphLowering& lowering_;
  std::map<std::string, ValueId> lengths_;  // by the dimension's name
};

}  // namespace sinter::convert

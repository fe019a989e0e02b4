// The rules of emit_bounded.cc for operations that read or write at indices: an index from the end counts
// from the length, and one in padding must change nothing.
#pragma once

#include "converter/import/lengths/bounded_operands.h"

namespace sinter::convert {

class BoundedIndices : protected BoundedOperands {
 protected:
  using BoundedOperands::BoundedOperands;

  Ids rule(const GatherAttrs& a);
  Ids rule(const GatherElementsAttrs& a);
  Ids rule(const GatherNdAttrs& a);
  Ids rule(const ScatterElementsAttrs& a);
  Ids rule(const ScatterNdAttrs& a);

 private:
  ValueId tuples(ValueId v, int64_t first, const LengthList& data, const Dims dims);
  ValueId one_more(ValueId v, int64_t axis);
  ValueId aside(ValueId indices, ValueId like, int64_t number);
  ValueId from_start(ValueId at, int64_t length);
  void one_length_for_updates(size_t axes);
};

}  // namespace sinter::convert

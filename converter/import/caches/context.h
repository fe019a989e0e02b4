// --max-context N: the position of a decoder, which the session keeps, and what follows from it
// (docs/decoders.md). The caches become states of N rows, which know how many of them exist; masks and
// positions are computed.
#pragma once

#include <functional>

#include "converter/import/caches/roles.h"

namespace sinter::convert {

class Context {
 public:
  Context(const ImportedModel& model, const ContextRoles& roles, Diagnostics& diagnostics)
      : graph_(model.graph), roles_(roles), diagnostics_(diagnostics) {}

  // Returns whether the input's value follows from the position, so that the caller does not give it.
  bool computes(const ImportedValueInfo& input) const;
  // Adds the position to the graph, and defines the inputs that follow from it. `shape_of` gives an input's
  // dims. Call it when the inputs that the caller gives are defined.
  void define_inputs(GraphLowering& lowering,
                     const std::function<std::optional<Dims>(const ImportedValueInfo&)>& shape_of);
  // Adds the position after the run to the outputs, behind those of the model.
  void add_output(GraphLowering& lowering) const;
  // Forgets that caches have lengths, when the graph is lowered: they are kept with all of their room.
  void forget_lengths(Graph& graph) const;

 private:
  ValueId emit(GraphLowering& lowering, OpAttrs attrs, std::vector<ValueId> inputs) const;
  bool checked_elements(const ImportedValueInfo& input, const Dims& dims) const;
  ValueId counted(GraphLowering& lowering, const Dims& dims) const;
  ValueId in_type(GraphLowering& lowering, ValueId value, DType type) const;
  ValueId mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const;
  ValueId room_mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const;
  ValueId positions(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const;

  const ImportedGraph& graph_;
  const ContextRoles& roles_;
  Diagnostics& diagnostics_;
  LengthId total_ = -1;         // tokens up to this run's last
  ValueId position_ = kAbsent;  // tokens before this run, checked
  ValueId next_ = kAbsent;      // the value of total_
};

}  // namespace sinter::convert

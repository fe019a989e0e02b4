// The weights of mixtures of experts, in the forms that MoE and QMoE have them.
#pragma once

#include "converter/import/lowering.h"

namespace sinter::convert {

// One projection of all experts: operands of ExpertFullyConnected.
struct ExpertProjection {
  ValueId weights = kAbsent, scales = kAbsent, zeros = kAbsent, bias = kAbsent;
  ValueId factor = kAbsent;  // or a float32 for each expert, which the rows are multiplied with
  bool in_float32 = false;   // whatever the type of the rows: scales and factors need its range
  int64_t block = 0;         // of scales
  int64_t experts = 0, outputs = 0, inputs = 0;

  bool present() const { return weights != kAbsent; }
};

// Projection `which` (1, 2 or 3) of rows of `inputs` numbers; not present where the node lacks it. False:
// refused.
bool read_moe_projection(NodeLowering& n, int which, int64_t inputs, ExpertProjection* p);
// The same of QMoE, by quant_type, which is one of those that is_expert_quant_type has.
bool read_qmoe_projection(NodeLowering& n, int which, int64_t inputs, ExpertProjection* p);
bool is_expert_quant_type(std::string_view type);

// rows [R, inputs], expert [R] -> [R, outputs], in the type of the rows.
ValueId project(NodeLowering& n, ValueId rows, ValueId expert, const ExpertProjection& p);

}  // namespace sinter::convert

// Lstm and Gru on integers: QLstm and QGru, with weights of 8 bits for each row, and inputs of 16 bits. The
// formula is in docs/numerics.md.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "converter/cost/node_cost.h"
#include "converter/ir/quant_params.h"

namespace sinter::convert {

// The value that a layer's fate is kept under: its first result. kAbsent: the node is not a recurrent layer.
ValueId recurrent_result(const Node& node);
// Why a recurrent layer has no integer form; empty: it has one.
std::string no_integer_form(const Graph& graph, const Node& node);

// Whether integers take less time there by node_cost.h's table, the cast of the input included.
bool gains_on_integers(Cpu cpu, const Graph& graph, const Node& node);

// The scale of a layer's input, seen between these numbers: int16, or int8 where sums of int16 may not fit 32
// bits.
QuantParams recurrent_scale(const Graph& graph, const Node& node, double low, double high);

// By a layer's first result: the scale of what it reads.
using RecurrentScales = std::map<ValueId, QuantParams>;

// These layers compute on integers. Where the input is known by its integers already, these are read.
void integer_recurrent(Graph& graph, const RecurrentScales& scales);

}  // namespace sinter::convert

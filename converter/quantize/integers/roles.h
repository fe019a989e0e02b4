// Which operations of a float graph are computed on integers, and why the others are not.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "converter/cost/node_cost.h"
#include "converter/ir/graph.h"

namespace sinter::convert {

// Returns whether the value is of float32, with elements, and of a shape that no run changes, inputs apart.
bool float_value(const Graph& g, ValueId id);
// Returns whether it is such a value and no constant.
bool is_data(const Graph& g, ValueId id);
// Returns the factor of a division by a constant; null: it is not one, or not finite.
ConstantPtr reciprocals(const Graph& g, ValueId id);
// Returns the axis of the output channels in the weights of a product with constant weights; -1: it is none.
int64_t weight_axis(const Graph& graph, const Node& node);

// Why an operation is kept in float.
enum class Reason {
  kNone,      // it does not
  kNoKernel,  // nothing computes it on integers
  kRange,     // its numbers fit no scale: not finite, or never seen
  kAccuracy,  // too much of the outputs' noise came from it
  kSlower,    // integers cost more there than they save
  kUser,      // --keep-float
};
const char* reason_name(Reason reason);

struct LeftFloat {
  Reason reason = Reason::kNone;
  std::string detail;
};
// The operations that must be kept in float, by their first output.
struct LeftMap : std::map<ValueId, LeftFloat> {
  bool force_int8 = false;     // nothing else is kept in float for being slower on integers
  bool require_int8 = false;   // nor for having integers on one side only
  Cpu cpu = Cpu::kAvx512Vnni;  // whose costs decide what is slower
  // Results of View that enter or leave the graph as integers (public_integers.h).
  std::set<ValueId> integer_ports;

  bool asks_for_integers() const { return force_int8 || require_int8; }
  // Memory and the file's size decide before time: on microcontrollers, and in plans of the reference kernels
  // for any machine.
  bool memory_decides() const { return is_on_reference_kernels(cpu); }
};

// The fate of an operation that takes or gives float32.
struct LayerFate {
  std::string name, op;
  ValueId output = kAbsent;
  bool integer = false;
  LeftFloat left;
  std::string wide = {};  // integers of 16 bits, because
  double multiply_adds = 0;
  double float_time = 0, integer_time = 0;  // estimates by node_cost.h
};

enum class Role {
  kFloat,
  kReader,   // a product in float whose operand comes from integers
  kInteger,  // products with constant weights, and what is between them
};
// Returns the role of every node. An operation that could use integers and is not in `left` may still be kept
// in float where these gain nothing. `fates`: if given, gets an entry for each operation that takes or gives
// float32.
std::vector<Role> assign_roles(const Graph& graph, const LeftMap& left = {},
                               std::vector<LayerFate>* fates = nullptr);

}  // namespace sinter::convert

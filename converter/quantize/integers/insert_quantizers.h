// Where a float graph is rounded to int8: Quantize and Dequantize are put around what the integer pass
// (integer_form.h) then computes on integers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "converter/cost/node_cost.h"
#include "converter/ir/quant_params.h"

namespace sinter::convert {

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
// Operations that must be kept in float, by their first output.
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
// One for every node. An operation that could use integers and is not in `left` may still be kept in float
// where these gain nothing.
std::vector<Role> assign_roles(const Graph& graph, const LeftMap& left = {},
                               std::vector<LayerFate>* fates = nullptr);
// The float values, no constants, that are to be rounded for their readers.
std::vector<ValueId> values_to_round(const Graph& graph, const std::vector<Role>& roles);
// Those of them that get their own scale: operations that only move elements keep the scale of the operand.
std::vector<ValueId> scaled_values(const Graph& graph, const std::vector<Role>& roles);
// These values and all that keep their scales because they are only moved from them: with what they come
// from.
std::map<ValueId, ValueId> with_moved(const Graph& graph, const std::vector<Role>& roles,
                                      const std::vector<ValueId>& values);
// The axis of the output channels in the weights of a product with constant weights; -1: it is none.
int64_t weight_axis(const Graph& graph, const Node& node);
// The weights of integer products rounded, everything else float.
void round_weights(Graph& graph, const std::vector<Role>& roles);

// Rounds these values, and the constants of integer operations (weights to 255 symmetric steps per output
// channel). Values without an entry are kept in float, and so are their readers. Returns the count of
// values that are rounded.
int place_quantizers(Graph& graph, const std::vector<Role>& roles,
                     const std::map<ValueId, QuantParams>& params);

}  // namespace sinter::convert

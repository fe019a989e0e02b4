// Facts about operations: the columns of schemas/ops.def, and functions of these. A pass that needs a fact
// about an operation calls them and keeps no list of operations of its own.
//
// Every row of ops.def gives every column, so that a new operation has each of these facts before it
// compiles. The treatment of one operation by one pass is that pass's own code; where it is a table,
// converter/ir/op_table.h proves that no operation is missing in it.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// The kind of work (column `work`). Tables of costs have a row for each.
enum class WorkKind : uint8_t {
  kNothing,            // no byte is moved
  kMovement,           // runs of elements are copied
  kRepetition,         // runs of elements are copied several times
  kScatter,            // elements are copied one by one
  kConversion,         // elements get another type
  kLogic,              // comparisons, choices and bits
  kArithmetic,         // an arithmetic operation on two operands
  kCheapFunction,      // a function of one operand, with few instructions an element
  kFunction,           // a function of one operand: an exponential, a root or the like
  kReduction,          // a reduction along axes
  kNormalization,      // a reduction, and a function of its result
  kSearch,             // sorting and collecting
  kPool,               // a window without weights
  kProduct,            // rows by weights
  kDepthwiseProduct,   // windows of one channel by weights
  kTransposedProduct,  // elements by weights, spread over windows
  kMatrixProduct,      // a product of two computed operands
  kAttention,          // two products with a softmax in between
  kRotation,           // rotations of pairs
  kResize,             // interpolation on a grid
  kSampling,           // interpolation at places that an operand gives
  kRecurrent,          // products along time
  kTransform,          // a transform to frequencies
  kCustom,             // an operator of the application
  kControl,            // subprograms
};

// The elements of output 0 (column `elements`).
enum class Elements : uint8_t {
  kMoved,       // operand 0's, at places that the attributes give
  kPicked,      // operand 0's, at places that another operand gives
  kJoined,      // the elements of all operands, side by side
  kPadded,      // operand 0's, and a fill
  kWritten,     // operand 0's, some of them replaced by another operand's
  kChosen,      // some operand's: the largest, the smallest, or by a condition
  kConverted,   // operand 0's in another type
  kPositions,   // positions along an axis of operand 0
  kTruth,       // true or false
  kWithinOne,   // computed, from -1 to 1 for any operands (the logarithm of a Softmax excepted)
  kNormalized,  // computed, of a size that does not depend on the operand's
  kComputed,    // computed, of any size
};

// The operation that computes a row in an integer model (column `integers`).
struct IntegerRow {
  enum Kind : uint8_t {
    kNone,   // it is kept in float
    kSame,   // the row itself, on integers
    kTable,  // a table of results, as a function of one value
    kRow,    // `row`
  };
  Kind kind = kNone;
  Op row = {};
};

WorkKind work_kind(Op op);
Elements elements_of(Op op);
IntegerRow integer_row(Op op);

// Whether a row has all of these bits of Trait.
bool has_traits(Op op, uint32_t traits);
inline bool is_elementwise(Op op) { return has_traits(op, kElementwise); }
inline bool accumulates(Op op) { return has_traits(op, kAccumulates); }

// ---- moving: results that consist of elements of the operands, unchanged

// Whether an operation moves, as far as it shows without attributes. A View may give the same bytes as
// another type, which moves no number; the overload with attributes knows.
bool moves(Op op);
// Whether it moves with these attributes; true for a Resize to the nearest neighbour as well.
bool moves(const OpAttrs& attrs);
// Whether every element of the result is one of operand 0's, and none a fill or another operand's.
bool moves_one(const OpAttrs& attrs);
// Whether, besides, every element of operand 0 is in the result.
bool moves_whole(const OpAttrs& attrs);
// Whether, besides, each is there once: View, Copy, Transpose.
bool moves_each_once(const OpAttrs& attrs);
// Whether the places are known at conversion, because no operand gives them.
bool moves_by_attributes(const OpAttrs& attrs);

// Whether operand 1 is indices, int32 or int64.
bool reads_indices(Op op);

// Returns the number of first operands from which the elements of the result come, moved or as the largest or
// smallest of several; 0: it computes.
size_t selected_operands(const Node& node);

// ---- products

// Whether it multiplies operand 0 by weights, operand 1: Conv, DepthwiseConv, ConvTranspose, FullyConnected.
bool is_weighted_product(Op op);
// Whether it is such a product, or a MatMul.
bool is_product(Op op);
// Whether it is Lstm, Gru or Rnn.
bool is_recurrent(Op op);
// Whether operand i may be weights: of a product, of a recurrent operation, or the table of a Gather.
bool may_be_weights(Op op, size_t i);

// ---- ranges

// Whether no element is beyond -1 and 1 for any operands.
bool is_within_one(const OpAttrs& attrs);

}  // namespace sinter::convert

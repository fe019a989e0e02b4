// Facts about an operation: the columns of schemas/ops.def, and the questions that follow from them. A pass
// that needs a fact about an operation asks here and keeps no list of operations of its own.
//
// Every row of ops.def gives every column, so that a new operation has an answer to each of these questions
// before it compiles. What one pass does to one operation is that pass's own code; where it is a table,
// converter/ir/op_table.h proves that no operation is missing in it.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// The kind of work (column `work`). Tables of costs have a row for each.
enum class WorkKind : uint8_t {
  kNothing,            // no byte is moved
  kMovement,           // runs of elements are copied
  kRepetition,         // the same, several times
  kScatter,            // elements are copied one by one
  kConversion,         // to another type
  kLogic,              // comparisons, choices and bits
  kArithmetic,         // of two operands
  kCheapFunction,      // of one operand: a few instructions an element
  kFunction,           // of one operand: an exponential, a root or the like
  kReduction,          // along axes
  kNormalization,      // a reduction, and a function of its result
  kSearch,             // sorting and collecting
  kPool,               // a window without weights
  kProduct,            // rows by weights
  kDepthwiseProduct,   // windows of one channel by weights
  kTransposedProduct,  // elements by weights, spread over windows
  kMatrixProduct,      // of two computed operands
  kAttention,          // two products with a softmax in between
  kRotation,           // of pairs
  kResize,             // interpolation on a grid
  kSampling,           // interpolation at places that an operand gives
  kRecurrent,          // products along time
  kTransform,          // to frequencies
  kCustom,             // an operator of the application
  kControl,            // subprograms
};

// The elements of output 0 (column `elements`).
enum class Elements : uint8_t {
  kMoved,       // operand 0's, at places that the attributes give
  kPicked,      // operand 0's, at places that another operand gives
  kJoined,      // those of all operands, side by side
  kPadded,      // operand 0's, and a fill
  kWritten,     // operand 0's, with those of another operand written over some
  kChosen,      // some operand's: the largest, the smallest, or by a condition
  kConverted,   // operand 0's in another type
  kPositions,   // positions along an axis of operand 0
  kTruth,       // true or false
  kWithinOne,   // computed, from -1 to 1 whatever the operands are (the logarithm of a Softmax excepted)
  kNormalized,  // computed, of a size that does not depend on the operand's
  kComputed,    // any others
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

// By the operation alone. A View may give the same bytes as another type, which moves no number: where the
// attributes are at hand, ask with them.
bool moves(Op op);
// The same for these attributes. True for a Resize to the nearest neighbour as well.
bool moves(const OpAttrs& attrs);
// Every element of the result is one of operand 0's; none is a fill or another operand's.
bool moves_one(const OpAttrs& attrs);
// The same, and every element of operand 0 is in the result.
bool moves_whole(const OpAttrs& attrs);
// The same, and each once: View, Copy, Transpose.
bool moves_each_once(const OpAttrs& attrs);
// The places are known at conversion: no operand gives them.
bool moves_by_attributes(const OpAttrs& attrs);

// Operand 1 is indices, int32 or int64.
bool reads_indices(Op op);

// The number of first operands that the elements of the result come from, moved or as the largest or smallest
// of several; 0: it computes.
size_t selected_operands(const Node& node);

// ---- products

// A product with weights: operand 0 by operand 1, of which a float model has one row each (Conv,
// DepthwiseConv, ConvTranspose, FullyConnected).
bool is_weighted_product(Op op);
// The same, or a MatMul.
bool is_product(Op op);
// Lstm, Gru, Rnn.
bool is_recurrent(Op op);
// Operand i of this operation may be weights: a product's, a recurrent operation's, or a table's of a Gather.
bool may_be_weights(Op op, size_t i);

// ---- ranges

// No element is beyond -1 and 1, whatever the operands are.
bool is_within_one(const OpAttrs& attrs);

}  // namespace sinter::convert

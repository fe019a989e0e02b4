// Functions that several families of rules share.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "converter/import/lowering.h"

namespace sinter::convert {

// Gives inputs 0 and 1, the second put where opset < 7's broadcast and axis attributes want it.
bool binary_operands(NodeLowering& n, ValueId* a, ValueId* b);
// Integers and booleans become float32, everything else stays.
ValueId as_float(NodeLowering& n, ValueId v);
// The node's axes: attribute `axes` or input `index`, normalised; empty means not given.
bool read_axes(NodeLowering& n, size_t index, int64_t rank, std::vector<int64_t>* axes);
inline IntList int_list(std::span<const int64_t> items) { return IntList(items); }
// x as [product of dims before axis, product of the others].
ValueId flatten_to_2d(NodeLowering& n, ValueId x, int64_t axis);
// A value of `channels` elements as [channels, 1, ...] so that it meets axis 1 of a value of this rank.
ValueId along_axis(NodeLowering& n, ValueId v, int64_t axis, int64_t rank);
// The most elements of an axis along which positions are computed at run time.
inline constexpr int64_t kLongestAxis = int64_t{1} << 28;
// The most slots of a window of states (state_window).
inline constexpr int64_t kMostStateSlots = 8;
// [0, 1, ... length - 1] in int64; kUnknown (refused) where that is longer.
ValueId index_row(NodeLowering& n, int64_t length);
// A bounded value with a known count is cut to it; otherwise its axis is bounded, with the count as its
// length.
ValueId bounded(NodeLowering& n, ValueId v, int64_t axis, ValueId count);
// Warns where results of small integers, or differences of unsigned ones, leave their type although a Cast or
// another reader takes them as more.
void warn_of_wrapping(NodeLowering& n, ValueId result);
// Marks attributes that only training used.
void ignore_legacy(NodeLowering& n);

// x * scale per tensor, axis or block, any integer or float8 type to float32 (`to`).
ValueId dequantize(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int64_t axis,
                   int64_t block_size, DType to);
ValueId quantize(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int64_t axis,
                 int64_t block_size, DType to, int64_t saturate);
// The activation that a fused operator names (fused_activation.cc): "" is none, others are refused.
ValueId activated(NodeLowering& n, ValueId y, std::string_view name, std::optional<double> alpha,
                  std::optional<double> beta);
// ... with the parameters that attributes activation_alpha and activation_beta give.
ValueId activated_by_attributes(NodeLowering& n, ValueId y, std::string_view name);
// The length of each of `sequences` that are packed one after the other into `tokens`; the operand holds
// their bounds, or is absent: all are as long. nullopt: refused, as lengths differ or are computed by a run
// (causal_conv.cc).
std::optional<int64_t> uniform_length(NodeLowering& n, size_t operand, int64_t sequences, int64_t tokens);
// Joins any number of values along an axis, in steps of as many operands as a step takes (movement.cc).
ValueId joined(NodeLowering& n, std::vector<ValueId> parts, int64_t axis);
// A matrix product by NumPy's rules, of operands of one type (linear.cc).
ValueId matrix_product(NodeLowering& n, ValueId a, ValueId b);

}  // namespace sinter::convert

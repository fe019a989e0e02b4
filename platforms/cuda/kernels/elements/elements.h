// Arguments of the element-wise kernels (elements_float.cu, elements_double.cu, elements_integer.cu): a small
// program, which a thread carries out for four neighbouring elements at a time.
//
// The program has one value, which every instruction changes: kLoad reads it from an operand, kStore writes
// it to one (and rounds or wraps it as a load would return it), and a function takes it and up to two
// operands. A step is kLoad, a function, kStore; a chain of steps, each of which reads the result of the one
// before, is their instructions one behind the other (chain.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platforms/cuda/grid/divider.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

inline constexpr int kElementRank = 8;        // axes
inline constexpr int kElementOperands = 12;   // of a program
inline constexpr int kElementSteps = 20;      // instructions of a program
inline constexpr int kElementGroup = 4;       // elements of a thread, along the innermost axis
inline constexpr uint8_t kValueItself = 255;  // an operand's number: the program's value

// An operand, broadcast to the elements of the box.
struct ElementOperand {
  std::byte* data = nullptr;         // null: a stored value is only rounded
  int32_t steps[kElementRank] = {};  // elements to the next along each axis, the innermost first; 0 repeats
  DType dtype = DType::kNone;
  uint8_t width = 0;  // bytes of an element
};

// The dims of all operands, the innermost first, in which axes that all operands pass as one are one.
struct ElementBox {
  int32_t rank = 1;     // 1 to kElementRank
  uint32_t groups = 0;  // all
  Divider groups_per_row;
  Divider dims[kElementRank];
};

template <class T>
struct ElementInstruction {
  uint8_t function = 0;
  uint8_t operands = 0;      // that it reads, at most two
  uint8_t value_place = 0;   // the place of the program's value among its parameters
  uint8_t from[2] = {0, 0};  // the operands, in the order of the other parameters; kStore: to the first
  uint8_t bits = 0;          // integers: of a number
  bool is_unsigned = false;  // integers: whether numbers are
  T with[3] = {};            // constants
};

template <class T>
struct ElementArguments {
  ElementBox box;
  int32_t operand_count = 0, instruction_count = 0;
  ElementOperand operands[kElementOperands];
  ElementInstruction<T> instructions[kElementSteps];
};
// The programs' classes of numbers: float for 16-bit floats as well, int64 for all integers and bool.
using FloatElements = ElementArguments<float>;
using DoubleElements = ElementArguments<double>;
using IntegerElements = ElementArguments<int64_t>;

inline constexpr uint8_t kElementLoad = 0, kElementStore = 1;

// The functions of programs in float and double, as the rows of ops.def and their enums define them.
enum class FloatFunction : uint8_t {
  kLoad = kElementLoad,
  kStore = kElementStore,
  kAbs,
  kNeg,
  kSign,
  kRoundEven,  // RoundFn, in order
  kFloor,
  kCeil,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kErf,
  kSin,  // TrigFn, in order
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kClassify,  // with: ClassifyBits
  kClamp,     // with: lower, upper
  kSigmoid,
  kTanh,
  kHardSigmoid,  // with: alpha, beta
  kHardSwish,
  kGelu,
  kGeluTanh,
  kSilu,       // with: alpha
  kElu,        // with: gamma * alpha, beta, gamma
  kLeakyRelu,  // with: alpha
  kSoftplus,
  kPRelu,  // x, slope
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMod,
  kMin,
  kMax,
  kEqual,  // CompareFn, in order: 1 or 0
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kWhere,       // condition, x, y
  kQuantize,    // x, scale, zero point?; with: the smallest and largest result
  kDequantize,  // x, scale, zero point?
};

enum class IntegerFunction : uint8_t {
  kLoad = kElementLoad,
  kStore = kElementStore,
  kAbs,
  kNeg,
  kSign,
  kBitNot,
  kNot,    // of bool
  kClamp,  // with: lower, upper
  kPRelu,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,  // with: whether exponents are unsigned
  kModFloor,
  kModTruncate,
  kMin,
  kMax,
  kEqual,  // CompareFn, in order: 1 or 0
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,  // BitwiseFn, in order
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kWhere,
};

}  // namespace sinter::cuda

// Builds programs of the element-wise kernels (kernels/elements/elements.h) from operands of a call.
//
//   FloatProgram p(l, l.out(0).shape());
//   p.load(l.in(0));
//   p.function(FloatFunction::kMul, {p.operand(l.in(1))});
//   p.store(l.out(0));
//   return p.launch();
#pragma once

#include <initializer_list>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {

template <class T>
struct ElementTraits;
template <>
struct ElementTraits<float> {
  using Function = FloatFunction;
  static constexpr Kernel kKernel = Kernel::k_elements_float;
};
template <>
struct ElementTraits<double> {
  using Function = FloatFunction;
  static constexpr Kernel kKernel = Kernel::k_elements_double;
};
template <>
struct ElementTraits<int64_t> {
  using Function = IntegerFunction;
  static constexpr Kernel kKernel = Kernel::k_elements_integer;
};

// Merges axes that all operands pass as one, removes axes of one element, and counts groups. `dims` are those
// of the box, the innermost first, like the operands' steps.
template <class T>
void settle_box(ElementArguments<T>* a, const int64_t* dims, int rank);

template <class T>
LaunchShape shape_of(const ElementArguments<T>& a) {
  return {.blocks = {blocks_for(a.box.groups, threads_of(ElementTraits<T>::kKernel))}};
}

template <class T>
class ElementProgram {
 public:
  using Function = typename ElementTraits<T>::Function;

  // A program of the elements of `dims`, to which all operands are broadcast.
  ElementProgram(Lowering& l, std::span<const int64_t> dims) : l_(l) { status_ = box_of(dims, &box_); }

  // Returns the number of an operand. `as` is the type of its bits, of the same width.
  uint8_t operand(const TensorView& view) { return operand(view, view.dtype); }
  uint8_t operand(const TensorView& view, DType as);
  // Returns the number of an operand in any memory: one element for all.
  uint8_t operand(std::byte* one, DType dtype);

  void load(uint8_t operand) { add(kElementLoad, {operand}); }
  void load(const TensorView& view) { load(operand(view)); }
  void store(uint8_t operand) { add(kElementStore, {operand}); }
  void store(const TensorView& view) { store(operand(view)); }
  // Rounds or wraps the value, as a store and a load would.
  void round_to(DType dtype) { store(operand(nullptr, dtype)); }
  // Adds a function of the value and up to two operands.
  void function(Function f, std::initializer_list<uint8_t> operands = {},
                std::initializer_list<T> with = {}) {
    add(static_cast<uint8_t>(f), operands, with);
  }
  // The functions after it compute in integers of `dtype`.
  void of_integers(DType dtype) {
    bits_ = static_cast<uint8_t>(bit_width(dtype));
    is_unsigned_ = !is_signed_integer(dtype);
  }

  Status launch();

 private:
  void add(uint8_t function, std::initializer_list<uint8_t> operands, std::initializer_list<T> with = {});

  Lowering& l_;
  Status status_;
  Box box_;
  ElementArguments<T> a_;
  uint8_t bits_ = 0;
  bool is_unsigned_ = false;
};

using FloatProgram = ElementProgram<float>;
using DoubleProgram = ElementProgram<double>;
using IntegerProgram = ElementProgram<int64_t>;

// Returns whether numbers of the type compute in float.
constexpr bool computes_in_float(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16;
}

}  // namespace sinter::cuda

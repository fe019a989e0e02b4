#include "platforms/cuda/chain.h"

#include <cstring>

#include "platforms/cuda/operators/element_program.h"

namespace sinter::cuda {
namespace {

// ---- a box that suits the operands of both programs

struct Axes {
  int rank = 0;
  int64_t dims[2 * kElementRank] = {};    // the innermost first
  int64_t inside[2 * kElementRank] = {};  // elements inside an axis
};

// Finds axes of which the axes of both boxes are made; false if there are none, or too many.
bool common_axes(const ElementBox& a, const ElementBox& b, Axes* axes) {
  const ElementBox* const boxes[] = {&a, &b};
  int at[2] = {0, 0};
  int64_t end[2] = {a.dims[0].divisor, b.dims[0].divisor};  // elements up to the end of the axis
  for (int64_t inside = 1; at[0] < a.rank || at[1] < b.rank;) {
    if (at[0] == a.rank || at[1] == b.rank) {  // the other axes must have one element
      const int i = at[0] == a.rank ? 1 : 0;
      if (end[i] != inside) return false;
    }
    const int64_t next = at[0] == a.rank   ? end[1]
                         : at[1] == b.rank ? end[0]
                         : end[0] < end[1] ? end[0]
                                           : end[1];
    if (next % inside != 0) return false;
    if (next != inside) {
      axes->dims[axes->rank] = next / inside;
      axes->inside[axes->rank++] = inside;
    }
    inside = next;
    for (int i = 0; i < 2; ++i)
      if (at[i] < boxes[i]->rank && end[i] == next && ++at[i] < boxes[i]->rank)
        end[i] *= boxes[i]->dims[at[i]].divisor;
  }
  return axes->rank <= kElementRank;
}

// Sets the operand's steps along the axes of which its box's are made.
bool spread(const ElementBox& box, const Axes& axes, ElementOperand* o) {
  int32_t steps[kElementRank] = {};
  int own = 0;
  int64_t begin = 1;
  for (int i = 0; i < axes.rank; ++i) {
    while (axes.inside[i] >= begin * box.dims[own].divisor) begin *= box.dims[own++].divisor;
    const int64_t step = o->steps[own] * (axes.inside[i] / begin);
    if (axes.inside[i] % begin != 0 || step != static_cast<int32_t>(step)) return false;
    steps[i] = static_cast<int32_t>(step);
  }
  std::memcpy(o->steps, steps, sizeof(steps));
  return true;
}

// ---- operands that are in each other's way

bool same_elements(const ElementOperand& a, const ElementOperand& b) {
  return a.data == b.data && a.width == b.width && std::memcmp(a.steps, b.steps, sizeof(a.steps)) == 0;
}

bool apart(const ElementOperand& a, const ElementOperand& b, const Axes& axes) {
  const ElementOperand* const both[] = {&a, &b};
  intptr_t first[2], end[2];
  for (int k = 0; k < 2; ++k) {
    first[k] = end[k] = reinterpret_cast<intptr_t>(both[k]->data);
    for (int i = 0; i < axes.rank; ++i) {
      const int64_t bytes = both[k]->steps[i] * (axes.dims[i] - 1) * both[k]->width;
      (bytes < 0 ? first[k] : end[k]) += bytes;
    }
    end[k] += both[k]->width;
  }
  return end[0] <= first[1] || end[1] <= first[0];
}

template <class T>
uint32_t written(const ElementArguments<T>& a) {
  uint32_t bits = 0;
  for (int i = 0; i < a.instruction_count; ++i)
    if (a.instructions[i].function == kElementStore && a.operands[a.instructions[i].from[0]].data != nullptr)
      bits |= 1u << a.instructions[i].from[0];
  return bits;
}

// If one writes and the other reads or writes, threads come only to elements of their own.
template <class T>
bool independent(const ElementArguments<T>& a, const ElementArguments<T>& b, const Axes& axes) {
  const uint32_t a_writes = written(a), b_writes = written(b);
  for (int i = 0; i < a.operand_count; ++i)
    for (int k = 0; k < b.operand_count; ++k) {
      if ((a_writes >> i & 1) == 0 && (b_writes >> k & 1) == 0) continue;
      const ElementOperand &x = a.operands[i], &y = b.operands[k];
      if (x.data != nullptr && y.data != nullptr && !same_elements(x, y) && !apart(x, y, axes)) return false;
    }
  return true;
}

// ---- instructions that take the value for an operand

// Makes `next` begin with the value of the chain, if it loads operand `value` there or its first function
// reads it.
template <class T>
void take_value(ElementArguments<T>* next, uint32_t values) {
  const auto is_value = [&](uint8_t operand) { return operand < 32 && (values >> operand & 1) != 0; };
  if (next->instruction_count < 2 || next->instructions[0].function != kElementLoad) return;
  const uint8_t loaded = next->instructions[0].from[0];
  ElementInstruction<T>& f = next->instructions[1];
  const bool has_function = f.function != kElementLoad && f.function != kElementStore;
  bool taken = is_value(loaded);
  if (taken && has_function) {
    for (int k = 0; k < f.operands; ++k)
      if (is_value(f.from[k])) f.from[k] = kValueItself;
  } else if (!taken && has_function && f.value_place == 0) {
    // The loaded operand becomes one that the function reads.
    for (int k = 0; k < f.operands && !taken; ++k) {
      if (!is_value(f.from[k])) continue;
      for (int j = k; j > 0; --j) f.from[j] = f.from[j - 1];
      f.from[0] = loaded;
      f.value_place = static_cast<uint8_t>(k + 1);
      for (int j = 1; j < f.operands; ++j)
        if (is_value(f.from[j])) f.from[j] = kValueItself;
      taken = true;
    }
  }
  if (!taken) return;
  for (int i = 1; i < next->instruction_count; ++i) next->instructions[i - 1] = next->instructions[i];
  --next->instruction_count;
}

template <class T>
bool reads(const ElementArguments<T>& a, int operand) {
  for (int i = 0; i < a.instruction_count; ++i) {
    const ElementInstruction<T>& c = a.instructions[i];
    const int count = c.function == kElementLoad ? 1 : c.function == kElementStore ? 0 : c.operands;
    for (int k = 0; k < count; ++k)
      if (c.from[k] == operand) return true;
  }
  return false;
}

// ---- joining

template <class T>
bool join(const ElementArguments<T>& first, const ElementArguments<T>& second, bool keep,
          ElementArguments<T>* joined) {
  ElementArguments<T> a = first, b = second;
  Axes axes;
  if (!common_axes(a.box, b.box, &axes)) return false;
  for (int k = 0; k < a.operand_count; ++k)
    if (!spread(a.box, axes, &a.operands[k])) return false;
  for (int k = 0; k < b.operand_count; ++k)
    if (!spread(b.box, axes, &b.operands[k])) return false;
  if (!independent(a, b, axes)) return false;

  const ElementInstruction<T>& last = a.instructions[a.instruction_count - 1];
  if (last.function != kElementStore) return false;
  ElementOperand& result = a.operands[last.from[0]];
  uint32_t values = 0;
  for (int k = 0; k < b.operand_count; ++k)
    if (same_elements(b.operands[k], result) && b.operands[k].dtype == result.dtype) values |= 1u << k;
  take_value(&b, values);
  if (!keep) {
    for (int k = 0; k < b.operand_count; ++k)
      if ((values >> k & 1) != 0 && reads(b, k)) return false;
    if (values == 0) return false;
    result.data = nullptr;
  }

  // The operands that only one of them reads, or both.
  uint8_t number[kElementOperands] = {};
  const uint32_t a_writes = written(a), b_writes = written(b);
  for (int k = 0; k < b.operand_count; ++k) {
    const bool writes = (b_writes >> k & 1) != 0;
    if (!writes && !reads(b, k) && b.operands[k].data != nullptr) continue;
    int same = -1;
    for (int i = 0; i < a.operand_count && !writes && same < 0; ++i)
      if ((a_writes >> i & 1) == 0 && a.operands[i].data != nullptr &&
          same_elements(a.operands[i], b.operands[k]) && a.operands[i].dtype == b.operands[k].dtype)
        same = i;
    if (same < 0) {
      if (a.operand_count == kElementOperands) return false;
      same = a.operand_count++;
      a.operands[same] = b.operands[k];
    }
    number[k] = static_cast<uint8_t>(same);
  }
  if (a.instruction_count + b.instruction_count > kElementSteps) return false;
  for (int i = 0; i < b.instruction_count; ++i) {
    ElementInstruction<T> c = b.instructions[i];
    for (uint8_t& from : c.from)
      if (from != kValueItself) from = number[from];
    a.instructions[a.instruction_count++] = c;
  }
  settle_box(&a, axes.dims, axes.rank);
  *joined = a;
  return true;
}

}  // namespace

bool ElementChain::begin(const Action& first) {
  if (first.kind != Action::Kind::kLaunch || !is_element_kernel(first.kernel)) return false;
  kernel_ = first.kernel, steps_ = 1;
  std::memcpy(static_cast<void*>(&floats_), first.arguments, first.argument_bytes);
  return true;
}

bool ElementChain::append(const Action& next, bool keep) {
  if (steps_ == 0 || next.kind != Action::Kind::kLaunch || next.kernel != kernel_) return false;
  const bool joined =
      kernel_ == Kernel::k_elements_float
          ? join(floats_, *static_cast<const FloatElements*>(next.arguments), keep, &floats_)
      : kernel_ == Kernel::k_elements_double
          ? join(doubles_, *static_cast<const DoubleElements*>(next.arguments), keep, &doubles_)
          : join(integers_, *static_cast<const IntegerElements*>(next.arguments), keep, &integers_);
  steps_ += joined;
  return joined;
}

Action ElementChain::action() const {
  Action a;
  a.kernel = kernel_;
  a.arguments = &floats_;
  if (kernel_ == Kernel::k_elements_float)
    a.shape = shape_of(floats_), a.argument_bytes = sizeof(floats_);
  else if (kernel_ == Kernel::k_elements_double)
    a.shape = shape_of(doubles_), a.argument_bytes = sizeof(doubles_);
  else
    a.shape = shape_of(integers_), a.argument_bytes = sizeof(integers_);
  return a;
}

namespace {

// Finds the kernel of a call that is one program of elements, and the program's number of elements.
bool program_of(const OpCall& call, Kernel* kernel, int64_t* elements) {
  const auto function = operator_of(call.op);
  if (function == nullptr || call.outputs.size() != 1) return false;
  Lowering l(call);
  if (!function(l).ok() || l.action_count() != 1) return false;
  *kernel = l.last_kernel();
  *elements = call.out(0).size();
  return is_element_kernel(*kernel);
}

}  // namespace

bool chains(const OpCall& first, const OpCall& next) {
  Kernel a{}, b{};
  int64_t a_elements = 0, b_elements = 0;
  return program_of(first, &a, &a_elements) && program_of(next, &b, &b_elements) && a == b &&
         a_elements == b_elements;
}

}  // namespace sinter::cuda

#include "platforms/cuda/operators/element_program.h"

namespace sinter::cuda {

template <class T>
void settle_box(ElementArguments<T>* a, const int64_t* dims, int rank) {
  int kept = 0;
  int64_t merged[kElementRank] = {};
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    bool merge = kept > 0;
    for (int k = 0; k < a->operand_count; ++k) {
      const int32_t* steps = a->operands[k].steps;
      merge = merge && steps[i] == steps[kept - 1] * merged[kept - 1];
    }
    if (merge) {
      merged[kept - 1] *= dims[i];
      continue;
    }
    merged[kept] = dims[i];
    for (int k = 0; k < a->operand_count; ++k) a->operands[k].steps[kept] = a->operands[k].steps[i];
    ++kept;
  }
  if (kept == 0) {
    merged[kept++] = 1;
    for (int k = 0; k < a->operand_count; ++k) a->operands[k].steps[0] = 0;
  }
  for (int k = 0; k < a->operand_count; ++k)
    for (int i = kept; i < kElementRank; ++i) a->operands[k].steps[i] = 0;
  a->box.rank = kept;
  int64_t rows = 1;
  for (int i = 0; i < kElementRank; ++i) a->box.dims[i] = Divider(i < kept ? merged[i] : 1);
  for (int i = 1; i < kept; ++i) rows *= merged[i];
  const int64_t groups = (merged[0] + kElementGroup - 1) / kElementGroup;
  a->box.groups_per_row = Divider(groups);
  a->box.groups = static_cast<uint32_t>(rows * groups);
}

template <class T>
uint8_t ElementProgram<T>::operand(const TensorView& view, DType as) {
  if (!status_.ok()) return 0;
  if (a_.operand_count == kElementOperands)
    return status_ =
               error(Code::kInternal, "an element-wise program of the CUDA platform has too many operands"),
           0;
  ElementOperand& o = a_.operands[a_.operand_count];
  o.data = view.data, o.dtype = as, o.width = static_cast<uint8_t>(byte_width(as));
  if (o.width == 0) return status_ = unsupported("elements are smaller than a byte"), 0;
  const Steps steps = steps_of(view, box_);
  for (int i = 0; i < box_.rank; ++i) {
    const int64_t bytes = steps.of[box_.rank - 1 - i], step = bytes / o.width;
    if (step * o.width != bytes || step != static_cast<int32_t>(step))
      return status_ = unsupported("a stride that is not of whole elements, or of 2^31 or more"), 0;
    o.steps[i] = static_cast<int32_t>(step);
  }
  return static_cast<uint8_t>(a_.operand_count++);
}

template <class T>
uint8_t ElementProgram<T>::operand(std::byte* one, DType dtype) {
  TensorView view;
  view.data = one, view.dtype = dtype;
  return operand(view);
}

template <class T>
void ElementProgram<T>::add(uint8_t function, std::initializer_list<uint8_t> operands,
                            std::initializer_list<T> with) {
  if (!status_.ok()) return;
  if (a_.instruction_count == kElementSteps) {
    status_ = error(Code::kInternal, "an element-wise program of the CUDA platform is too long");
    return;
  }
  ElementInstruction<T>& c = a_.instructions[a_.instruction_count++];
  c.function = function, c.bits = bits_, c.is_unsigned = is_unsigned_;
  for (const uint8_t o : operands) c.from[c.operands++] = o;
  int count = 0;
  for (const T v : with) c.with[count++] = v;
}

template <class T>
Status ElementProgram<T>::launch() {
  SINTER_RETURN_IF_ERROR(status_);
  if (box_.size == 0) return ok_status();
  int64_t dims[kElementRank] = {};
  for (int i = 0; i < box_.rank; ++i) dims[i] = box_.dims[box_.rank - 1 - i].divisor;
  settle_box(&a_, dims, box_.rank);
  return l_.launch<ElementTraits<T>::kKernel>(shape_of(a_), a_);
}

template void settle_box(ElementArguments<float>*, const int64_t*, int);
template void settle_box(ElementArguments<double>*, const int64_t*, int);
template void settle_box(ElementArguments<int64_t>*, const int64_t*, int);
template class ElementProgram<float>;
template class ElementProgram<double>;
template class ElementProgram<int64_t>;

}  // namespace sinter::cuda

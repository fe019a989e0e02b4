// What an opened model is made of, for the runtime's own parts and for tools that inspect files.
#pragma once

#include <span>

#include "runtime/core/checked.h"
#include "runtime/core/op.h"
#include "runtime/core/tensor_view.h"
#include "runtime/model/format.h"
#include "schemas/generated/model_generated.h"
#include "sinter/model.h"

namespace sinter::detail {

struct ModelState {
  const fb::Model* root = nullptr;
  const std::byte* flatbuffer = nullptr;  // where it starts
  std::span<const std::byte> file;
  std::span<const format::Segment> segments;
  KernelTable kernels;
  uint64_t flatbuffer_bytes = 0;
  size_t retained = 0;
};

// Length of a list that may be absent.
template <class T>
uint32_t length(const flatbuffers::Vector<T>* list) {
  return list != nullptr ? list->size() : 0;
}
// A list of plain numbers as a span. Lists of 8-byte numbers are verified to be aligned.
template <class T>
std::span<const T> items(const flatbuffers::Vector<T>* list) {
  if (list == nullptr) return {};
  return {reinterpret_cast<const T*>(list->Data()), list->size()};
}
inline const char* text(const flatbuffers::String* s) { return s != nullptr ? s->c_str() : ""; }

// Operands of one step that is not an If or Loop.
inline constexpr uint32_t kMaxOperands = 128;
inline constexpr int kMaxNesting = 8;
// Prepare steps from the first that a prepared value depends on to its own.
inline constexpr int32_t kMaxPrepareChain = 64;

// Room for any op's attributes.
inline constexpr size_t kMostAttrBytes = [] {
  size_t most = 0;
#define SINTER_OP(name, ...) most = sizeof(name##Attrs) > most ? sizeof(name##Attrs) : most;
#include "schemas/ops.def"
#undef SINTER_OP
  return most;
}();
struct alignas(8) AttrStorage {
  std::byte bytes[kMostAttrBytes];
};

// A value's dtype and dims, dense. The value is verified.
inline TensorView value_view(const fb::Value& value) {
  TensorView view;
  view.dtype = static_cast<DType>(value.dtype());
  view.set_shape(items(value.dims()));
  return view;
}

inline const std::byte* constant_data(const ModelState& model, const fb::Constant& constant) {
  return model.file.data() + model.segments[constant.segment()].offset + constant.offset();
}

inline Op step_op(const fb::Step& step) { return static_cast<Op>(step.op()); }
inline bool is_control(const fb::Step& step) {
  return step_op(step) == Op::kIf || step_op(step) == Op::kLoop;
}

// How a control step's operands meet its subprograms' inputs: those from `captured` on are captured, in
// order; the subprogram's inputs before `own` are its own parameters.
struct ControlShape {
  uint32_t captured = 0;  // first captured operand of the step
  uint32_t own = 0;       // the subprogram's own parameters
  uint32_t carried = 0;   // Loop
};
inline ControlShape control_shape(const fb::Step& step) {
  if (step_op(step) == Op::kIf) return {1, 0, 0};
  const auto carried = static_cast<uint32_t>(items(step.ints())[1]);  // max_trips, carried
  return {2 + carried, 2 + carried, carried};
}

// Binary search in a plan's placements; null if the value has none.
const fb::Placement* find_placement(const fb::ProgramPlan& plan, uint32_t value);

}  // namespace sinter::detail

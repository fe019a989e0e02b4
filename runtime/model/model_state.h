// The state of an opened model, for parts of the runtime and for tools that inspect files.
#pragma once

#include <span>

#include "runtime/core/built.h"
#include "runtime/core/checked.h"
#include "runtime/core/custom_definition.h"
#include "runtime/core/custom_ops.h"
#include "runtime/core/op.h"
#include "runtime/core/tensor_view.h"
#include "runtime/model/format.h"
#include "schemas/generated/model_generated.h"
#include "sinter/model.h"

namespace sinter::detail {

struct ModelState {
  const fb::Model* root = nullptr;
  const std::byte* flatbuffer = nullptr;  // the address where it starts
  std::span<const std::byte> file;
  std::span<const format::Segment> segments;
  KernelTable kernels;
  CustomOps custom_ops;
  uint64_t flatbuffer_bytes = 0;
  size_t retained = 0;
};

// Returns the length of a list that may be absent.
template <class T>
uint32_t length(const flatbuffers::Vector<T>* list) {
  return list != nullptr ? list->size() : 0;
}
// Returns a list of plain numbers as a span. Lists of 8-byte numbers are verified to be aligned.
template <class T>
std::span<const T> items(const flatbuffers::Vector<T>* list) {
  if (list == nullptr) return {};
  return {reinterpret_cast<const T*>(list->Data()), list->size()};
}
inline const char* text(const flatbuffers::String* s) { return s != nullptr ? s->c_str() : ""; }
// Returns the bytes of a list of bytes.
inline std::span<const std::byte> bytes_of(const flatbuffers::Vector<uint8_t>* list) {
  return std::as_bytes(items(list));
}

// The most operands of a step that is not an If or Loop: those of this build's operations, within the limit.
// Creating a session keeps their views on the stack.
inline constexpr uint32_t kOperandLimit = 16;
inline constexpr uint32_t kMaxOperands = [] {
  uint32_t most = 1;
#define SINTER_OP(name, id, version, min_inputs, max_inputs, min_outputs, max_outputs, ...)             \
  {                                                                                                     \
    constexpr bool kAny = max_inputs < 0 || max_outputs < 0;                                            \
    constexpr uint32_t kCount = kAny ? kOperandLimit : static_cast<uint32_t>(max_inputs + max_outputs); \
    static_assert(kCount <= kOperandLimit);                                                             \
    if (is_built(Op::k##name) && kCount > most) most = kCount;                                          \
  }
#include "schemas/ops.def"
#undef SINTER_OP
  return most;
}();
inline constexpr int kMaxNesting = 8;
inline constexpr uint32_t kMaxRegions = 16;   // of a program
inline constexpr uint32_t kMaxProfiles = 16;  // of a file
inline constexpr uint32_t kMaxLengths = 16;   // given by the caller of a program
// The limits of metadata and labels: how many, and the bytes of a text.
inline constexpr uint32_t kMaxMetadata = 1024;
inline constexpr uint32_t kMaxKeyBytes = 255;
inline constexpr uint32_t kMaxMetadataBytes = 1 << 20;  // of one value
inline constexpr uint32_t kMaxLabelBytes = 4095;
// The longest chain of prepare steps, from the first that a prepared value depends on to its own.
inline constexpr int32_t kMaxPrepareChain = 64;

// The bytes that hold any op's attributes.
inline constexpr size_t kMostAttrBytes = [] {
  size_t most = 0;
#define SINTER_OP(name, ...) \
  most = is_built(Op::k##name) && sizeof(name##Attrs) > most ? sizeof(name##Attrs) : most;
#include "schemas/ops.def"
#undef SINTER_OP
  return most;
}();
struct alignas(8) AttrStorage {
  std::byte bytes[kMostAttrBytes];
};

// Returns a view of the value's dtype and dims, dense. The value is verified.
inline TensorView value_view(const fb::Value& value) {
  TensorView view;
  view.dtype = static_cast<DType>(value.dtype());
  view.set_shape(items(value.dims()));
  return view;
}

// Returns the dims as the ONNX model has them.
inline std::span<const int64_t> port_dims(const fb::Port& port, const fb::Value& value) {
  return port.dims() != nullptr ? items(port.dims()) : items(value.dims());
}

// Returns the index in Program.lengths of the value that holds a length, or their count if none does.
inline uint32_t find_length(const fb::Program& program, int32_t value) {
  uint32_t n = 0;
  while (n < length(program.lengths()) &&
         static_cast<int64_t>(program.lengths()->Get(n)->value()) != int64_t{value})
    ++n;
  return n;
}

// Returns the entries that an axis of an entry program's input may have.
inline AxisRange axis_range(const fb::Program& program, const fb::Port& port, int axis) {
  const fb::Value& value = *program.values()->Get(port.value());
  const int64_t dim = port_dims(port, value)[static_cast<size_t>(axis)];
  AxisRange range{axis, dim, dim};
  for (uint32_t i = 0; i < length(value.bounded_dims()); ++i)
    if (value.bounded_dims()->Get(i)->axis() == axis)
      range.minimum =
          program.lengths()->Get(find_length(program, value.bounded_dims()->Get(i)->length()))->minimum();
  return range;
}

// Returns the bytes of a verified constant.
inline int64_t constant_bytes(const fb::Constant& constant) {
  int64_t bytes = 0;
  (void)checked_bytes(static_cast<DType>(constant.dtype()), items(constant.dims()), &bytes);
  return bytes;
}
// The segment of a constant that the file lacks, because it holds it in packed form alone (FORMAT.md).
inline constexpr uint32_t kLeftOut = UINT32_MAX;  // as Constant.segment
inline bool is_left_out(const fb::Constant& constant) { return constant.segment() == kLeftOut; }
inline int64_t bytes_in_file(const fb::Constant& constant) {
  return is_left_out(constant) ? 0 : constant_bytes(constant);
}
// Returns null if the constant is left out. No reader of a step's operands comes to it then: creating a
// session refuses the step (left_out.cc), and the verifier every other reader.
inline const std::byte* constant_data(const ModelState& model, const fb::Constant& constant) {
  if (is_left_out(constant)) return nullptr;
  return model.file.data() + model.segments[constant.segment()].offset + constant.offset();
}

inline Op step_op(const fb::Step& step) { return static_cast<Op>(step.op()); }
inline bool is_control(const fb::Step& step) {
  return kControlFlow && (step_op(step) == Op::kIf || step_op(step) == Op::kLoop);
}

inline bool is_custom(const fb::Step& step) { return is_built(Op::kCustom) && step_op(step) == Op::kCustom; }

// The way in which a control step's operands become its subprograms' inputs: those from `captured` on are
// captured, in order; the subprogram's inputs before `own` are its own parameters.
struct ControlShape {
  uint32_t captured = 0;  // first captured operand of the step
  uint32_t own = 0;       // the subprogram's own parameters
  uint32_t carried = 0;   // by Loop
};
inline ControlShape control_shape(const fb::Step& step) {
  if (step_op(step) == Op::kIf) return {1, 0, 0};
  const auto carried = static_cast<uint32_t>(items(step.ints())[1]);  // max_trips, carried
  return {2 + carried, 2 + carried, carried};
}

// Builds the step's attribute struct in `storage` (attrs_bytes() of its op, aligned to 8). Fails with
// kCorrupt where the lists, which need not be verified, do not fit the op.
inline Status decode_attrs(const fb::Step& step, void* storage) {
  return sinter::decode_attrs(step_op(step), step.op_version(),
                              {items(step.ints()), items(step.floats()), bytes_of(step.bytes())}, storage);
}

// Does the same; a custom operator's step refers to its operator, if the application gave it. The definition
// is verified.
inline Status decode_attrs(const ModelState& model, const fb::Step& step, void* storage) {
  SINTER_RETURN_IF_ERROR(decode_attrs(step, storage));
  if (!is_custom(step)) return ok_status();
  auto& custom = *static_cast<CustomAttrs*>(storage);
  const AttrBytes& definition = custom.definition;
  custom.op = find_custom_op(model.custom_ops, custom_domain(definition), custom_name(definition),
                             custom_version(definition));
  return ok_status();
}

// Returns the table whose key is `key`, or null, by binary search; `list` ascends by key_of(table).
template <class T, class KeyOf>
const T* find_sorted(const flatbuffers::Vector<flatbuffers::Offset<T>>* list, uint32_t key, KeyOf key_of) {
  uint32_t lo = 0, hi = length(list);
  while (lo < hi) {
    const uint32_t mid = (lo + hi) / 2;
    const T* table = list->Get(mid);
    const uint32_t at = key_of(*table);
    if (at == key) return table;
    if (at < key)
      lo = mid + 1;
    else
      hi = mid;
  }
  return nullptr;
}
// Returns the operation's name, or the operator's for a custom operator's step. The step is verified.
const char* step_op_name(const fb::Step& step);
const fb::Placement* find_placement(const fb::ProgramPlan& plan, uint32_t value);
// Returns the value's dtype and dims with its strides there. Both are verified, as far as the placement goes.
TensorView placed_view(const fb::Value& value, const fb::Placement& placement);
// Returns the bytes from the beginning of the first element to the end of the last one.
uint64_t extent_bytes(const TensorView& placed);
// Returns the bytes of a placement in a plan of the program.
inline uint64_t placed_bytes(const fb::Program& program, const fb::Placement& placement) {
  return extent_bytes(placed_view(*program.values()->Get(placement.value()), placement));
}
// Returns the device memory `kind` that a control step of `plan` has for its subprograms, or null.
const fb::DeviceWorkspace* find_device_workspace(const fb::ProgramPlan& plan, const fb::StepPlan& step,
                                                 uint8_t kind);
const fb::ProgramPlan* find_plan(const fb::Profile& profile, uint32_t program);

}  // namespace sinter::detail

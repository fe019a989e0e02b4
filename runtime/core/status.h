// Status: an error or success as a small value that can be copied anywhere and needs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinter {

enum class Code : uint8_t {
  kOk = 0,
  kInvalidArgument,  // the caller's mistake: wrong name, shape, type, buffer
  kCorrupt,          // the model file is damaged or hostile
  kUnsupported,      // a valid request that this build or kernel cannot serve
  kOutOfMemory,      // a region is too small; `a` bytes are needed, `b` were given
  kOutOfRange,       // a value found at run time (an index, a length) is outside its domain
  kInternal,         // a bug
  kCancelled,        // the caller has ended the run (Session::set_cancel)
};

// The meaning of `Status::index`.
enum class Where : uint8_t {
  kNone,
  kStep,
  kPrepareStep,  // a step of a program's prepare list
  kValue,
  kInput,   // an input of the model
  kOutput,  // an output of the model
  kSegment,
  kProgram,
  kBackend
};

// The outcome of an operation. In the literal `message` %a and %b stand for the two numbers, %A, %B for
// types; %s and %t for texts at the addresses a and b (name_of), %r for an AxisRange at address b: these live
// as long as the object that was asked. A Status is trivially copyable and holds no heap memory.
struct [[nodiscard]] Status {
  Code code = Code::kOk;
  Where where = Where::kNone;
  uint16_t program = 0;  // the program of the step; 65535: that program or a later one
  int32_t index = -1;
  int32_t operand = -1;  // the input of the operation, if the message is about one
  const char* message = nullptr;
  int64_t a = 0;
  int64_t b = 0;

  constexpr bool ok() const { return code == Code::kOk; }
  // Returns the same status with a place (an earlier place is kept).
  constexpr Status at(Where place, int32_t i) const {
    Status s = *this;
    if (s.where == Where::kNone && !s.ok()) s.where = place, s.index = i;
    return s;
  }
  // Returns the same status with this input of the operation (an earlier one is kept).
  constexpr Status of_input(size_t i) const {
    Status s = *this;
    if (s.operand < 0 && !s.ok()) s.operand = static_cast<int32_t>(i);
    return s;
  }
  // Returns the same status with the place of a step, or a step of the prepare list, of a program.
  constexpr Status at_step(uint32_t step, uint32_t of, Where place = Where::kStep) const {
    if (where != Where::kNone || ok()) return *this;
    Status s = at(place, static_cast<int32_t>(step));
    s.program = static_cast<uint16_t>(of < UINT16_MAX ? of : UINT16_MAX);
    return s;
  }
};

constexpr Status ok_status() { return {}; }
constexpr Status error(Code code, const char* message, int64_t a = 0, int64_t b = 0) {
  return {code, Where::kNone, 0, -1, -1, message, a, b};
}
constexpr Status invalid(const char* message, int64_t a = 0, int64_t b = 0) {
  return error(Code::kInvalidArgument, message, a, b);
}
// Returns the error of a workspace whose size overflows.
constexpr Status too_much_workspace() {
  return invalid("the operation needs more workspace than the step has");
}
constexpr Status unsupported(const char* message, int64_t a = 0, int64_t b = 0) {
  return error(Code::kUnsupported, message, a, b);
}
constexpr Status corrupt(const char* message, int64_t a = 0, int64_t b = 0) {
  return error(Code::kCorrupt, message, a, b);
}

// Returns a text as one of a status's numbers.
inline int64_t name_of(const char* text) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(text)); }

// The names for the place of a status: "step 3 'conv1' (Conv)".
struct PlaceNames {
  const char* name = "";
  const char* kind = "";
};

// Writes the sentence for `status` into `buffer`, always terminated and cut to its size. Returns the length
// written. Model::format() finds the names.
size_t format_status(const Status& status, std::span<char> buffer, const PlaceNames& names = {});

// A value or the status that explains its absence. T must be default-constructible.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(const Status& status) : status_(status) {}     // NOLINT(google-explicit-constructor)
  Result(T value) : value_(static_cast<T&&>(value)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return value_; }
  const T& value() const { return value_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  Status status_;
  T value_{};
};

}  // namespace sinter

// Returns the status from the enclosing function unless it is ok.
#define SINTER_RETURN_IF_ERROR(expr)                 \
  do {                                               \
    const ::sinter::Status sinter_status_ = (expr);  \
    if (!sinter_status_.ok()) return sinter_status_; \
  } while (false)

// Returns an error of the given kind unless `condition` holds: SINTER_RETURN_UNLESS(rank == 4, invalid("rank
// is %a, not 4", rank)).
#define SINTER_RETURN_UNLESS(condition, failure) \
  do {                                           \
    if (!(condition)) return (failure);          \
  } while (false)

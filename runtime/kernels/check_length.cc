// CheckLength: compares a length that depends on data with another length, or with the planned maximum.
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

constexpr int64_t kLengthRules = 6;

Status infer_check_length(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<CheckLengthAttrs>().rule, kLengthRules));
  for (size_t i = 0; i < 3; ++i) {
    SINTER_RETURN_IF_ERROR(check_dtype(call, i, call.in(i).dtype == DType::kInt64));
    SINTER_RETURN_UNLESS(call.in(i).rank == 0, invalid("it is not a scalar").of_input(i));
  }
  return give_output(call, 0, DType::kInt64, {});
}

Status run_check_length(const OpCall& call, RunContext&) {
  const auto length = load<int64_t>(call.in(0).data), found = load<int64_t>(call.in(1).data),
             limit = load<int64_t>(call.in(2).data);
  const auto fails = [&](const char* message) { return error(Code::kOutOfRange, message, found, limit); };
  const bool within = found >= 0 && found <= limit;
  switch (static_cast<LengthRule>(call.attrs<CheckLengthAttrs>().rule)) {
    case LengthRule::kMeet:
      SINTER_RETURN_UNLESS(found == limit, fails("lengths %a and %b of one axis differ"));
      break;
    case LengthRule::kElements:
      SINTER_RETURN_UNLESS(found == limit, fails("%a elements do not fit a shape of %b elements"));
      break;
    case LengthRule::kWithin:
      SINTER_RETURN_UNLESS(within, fails("a part of %a elements is not within an axis of %b"));
      break;
    case LengthRule::kPlanned:
      SINTER_RETURN_UNLESS(
          within,
          fails("a length of %a is outside the planned 0 to %b; convert with a larger --bound NODE=N, or "
                "--max-context N"));
      break;
    case LengthRule::kPart:
      SINTER_RETURN_UNLESS(
          found == limit,
          error(Code::kOutOfRange, "a slice that starts at %a has fewer than the required %b elements",
                length, limit));
      break;
    case LengthRule::kUnfit:
      // The error is not one of numbers, so that no pass folds the operation.
      return unsupported("a branch was taken that does not fit the shapes of the plan");
  }
  store<int64_t>(call.out(0).data, length);
  return ok_status();
}

}  // namespace

const Kernel kCheckLengthKernel =
    reference_kernel({Op::kCheckLength, infer_check_length, nullptr, run_check_length});

}  // namespace sinter

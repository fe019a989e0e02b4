#include "platforms/xnnpack/platform.h"

#include <algorithm>

#include "platforms/times/kernel_time.h"
#include "platforms/xnnpack/planning/accept.h"
#include "platforms/xnnpack/planning/kept_bytes.h"

namespace sinter {
namespace xnnpack {
namespace {

struct Capability {
  Op op;
  int dtypes;
  Status (*accept)(const Request& r, size_t* workspace);
};

constexpr kernel_time::KernelTime kTimes[] = {
#include "platforms/xnnpack/planning/kernel_times.def"
};

constexpr Capability kCapabilities[] = {
#define SINTER_XNNPACK(op, dtypes, work, accept, ...) {Op::k##op, dtypes, accept_##accept},
#include "platforms/xnnpack/operators.def"
#undef SINTER_XNNPACK
};

int bit_of(DType t) {
  return t == DType::kFloat32 ? kFloat32 : t == DType::kFloat16 ? kFloat16 : t == DType::kInt8 ? kInt8 : 0;
}

Status check_dtypes(const OpCall& call, int dtypes) {
  const int first = bit_of(call.in(0).dtype);
  SINTER_RETURN_UNLESS((dtypes & kFloats) != kFloat16 || first != kFloat32,
                       unsupported("used for float16 only; other backends are faster in float32"));
  if ((dtypes & kFloats) == 0) {
    SINTER_RETURN_UNLESS((first & dtypes) != 0, unsupported("only int8 from int8"));
    return ok_status();  // the weights' functions check other types
  }
  for (const auto views : {call.inputs, call.outputs})
    for (const TensorView& v : views) {
      if (!v.present()) continue;
      SINTER_RETURN_UNLESS((bit_of(v.dtype) & dtypes) != 0, unsupported("only float32 and float16 operands"));
      SINTER_RETURN_UNLESS((dtypes & kMixed) != 0 || v.dtype == call.in(0).dtype,
                           unsupported("only operands of one type"));
    }
  return ok_status();
}

// Checks strides: the library has them for pixels and rows, in operands 0, and no others.
Status check_strides(const OpCall& call) {
  const OpInfo& info = *op_info(call.op);
  const auto fits = [](const TensorView& v, bool pixels) {
    size_t step = 0;
    return !v.present() || (v.size() > 0 && (v.dense() || (pixels && pixel_step(v, &step))));
  };
  bool fit = true;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    fit = fit && fits(call.in(i), i == 0 && info.in_strides == Strides::kPixel);
  for (size_t i = 0; i < call.outputs.size(); ++i)
    fit = fit && fits(call.out(i), i == 0 && info.out_strides == Strides::kPixel);
  SINTER_RETURN_UNLESS(fit, unsupported("only dense operands with elements"));
  return ok_status();
}

}  // namespace

Status accept(const Target& target, const OpCall& call, int threads, size_t* workspace) {
  *workspace = 0;
  const Capability* row = row_of(kCapabilities, call.op);
  SINTER_RETURN_UNLESS(row != nullptr, unsupported("the library has no such operator"));
  SINTER_RETURN_IF_ERROR(check_dtypes(call, row->dtypes));
  SINTER_RETURN_IF_ERROR(check_strides(call));
  return row->accept({target, call, static_cast<size_t>(std::max(threads, 1))}, workspace);
}

bool is_half(const OpCall& call) { return call.in(0).dtype == DType::kFloat16; }

namespace {

bool serves(const Target& target) {
  return target.architecture == Architecture::kX86_64 || target.architecture == Architecture::kAarch64 ||
         target.architecture == Architecture::kArmv7;
}

bool computes_half(const Target& target, DType type) {
  return type == DType::kFloat16 && target.architecture == Architecture::kAarch64;
}

bool has_kernel(const Target& target, Op op) {
  const Capability* row = row_of(kCapabilities, op);
  return row != nullptr &&
         (computes_half(target, DType::kFloat16) || (row->dtypes & (kFloat32 | kInt8)) != 0);
}

Status accept_planned(const Target& target, const OpCall& call, int threads, size_t* workspace) {
  SINTER_RETURN_IF_ERROR(accept(target, call, threads, workspace));
  SINTER_RETURN_UNLESS(!is_half(call) || computes_half(target, DType::kFloat16),
                       unsupported("float16 kernels are for 64-bit ARM"));
  return ok_status();
}

}  // namespace
}  // namespace xnnpack

constexpr Platform xnnpack_platform = {
    .name = "xnnpack",
    .serves = xnnpack::serves,
    .has_kernel = xnnpack::has_kernel,
    .accept = xnnpack::accept_planned,
    .kept_bytes = xnnpack::kept_bytes,
    .time = kernel_time::time_by<xnnpack::kTimes>,
    .computes_half = xnnpack::computes_half,
};

}  // namespace sinter

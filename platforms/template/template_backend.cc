#include "platforms/template/template_backend.h"

#include "platforms/template/platform.h"

namespace sinter {
namespace {

Status negate(void*, const OpCall& call, RunContext&) {
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>();
  for (int64_t i = 0; i < call.out(0).size(); ++i) y[i] = -x[i];
  return ok_status();
}

}  // namespace

// The planning side answers for the device as well, so that steps run as planned.
Status TemplateBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  *needs = {};
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  return template_platform.accept({.architecture = kHostArchitecture}, call, threads, &needs->workspace);
}

Status TemplateBackend::prepare(const OpCall&, const Preparation&, PreparedStep* step) {
  step->run = negate;
  return ok_status();
}

}  // namespace sinter

#include "platforms/cuda/driver/device.h"

namespace sinter::cuda {
namespace {

constexpr int kMinCapability = 75;
// From this driver on, a launch in a graph may begin while the one before it ends. Kernels wait for that one
// (wait_for_launch_before() of grid/device_grid.h) if they were compiled for this architecture or a later
// one.
constexpr int kOverlapDriver = 12030, kOverlapArchitecture = 90;

}  // namespace

Status Device::failure(DriverResult result, const char* what) const {
  const char* name = nullptr;
  if (api_->error_name(result, &name) != kDriverSuccess || name == nullptr) name = "an unknown error";
  return error(result == kDriverOutOfMemory ? Code::kOutOfMemory : Code::kInternal,
               "the CUDA driver reports %s when asked to %t", name_of(name), name_of(what));
}

// A machine whose driver cannot be used has no device.
Status Device::refused(DriverResult result, const char* what) const {
  const Status found = failure(result, what);
  return unsupported(found.message, found.a, found.b);
}

Status Device::open() {
  const CreationGuard guard(lock_);
  if (opened_) return refusal_;
  opened_ = true;
  refusal_ = open_first();
  return refusal_;
}

Status Device::open_first() {
  SINTER_RETURN_IF_ERROR(provider_.driver(&api_));
  int count = 0;
  DriverResult status = api_->init(0);
  if (status != kDriverSuccess && status != kDriverNoDevice) return refused(status, "start");
  if (status == kDriverSuccess && api_->device_count(&count) != kDriverSuccess) count = 0;
  SINTER_RETURN_UNLESS(count > 0, unsupported("the CUDA driver finds no device; run with another backend"));
  DeviceNumber device = 0;
  int major = 0, minor = 0;
  status = api_->device_get(&device, 0);
  if (status == kDriverSuccess) status = api_->device_name(name_, sizeof(name_), device);
  if (status == kDriverSuccess) status = api_->device_attribute(&major, kCapabilityMajor, device);
  if (status == kDriverSuccess) status = api_->device_attribute(&minor, kCapabilityMinor, device);
  if (status == kDriverSuccess)
    status = api_->device_attribute(&facts_.multiprocessors, kMultiprocessorCount, device);
  if (status != kDriverSuccess) return refused(status, "describe the device");
  facts_.capability = 10 * major + minor;
  SINTER_RETURN_UNLESS(
      facts_.capability >= kMinCapability,
      unsupported("the CUDA device has compute capability %a.%b; 7.5 is needed", major, minor));
  int toolkit = 0, version = 0;
  SINTER_RETURN_IF_ERROR(provider_.units(&images_, &toolkit));
  status = api_->driver_version(&version);
  if (status != kDriverSuccess) return refused(status, "state its version");
  SINTER_RETURN_UNLESS(
      version / 1000 >= toolkit,
      unsupported("the CUDA driver is of version %a and the kernels were compiled by a toolkit of version "
                  "%b; update the driver, or compile them with an older toolkit",
                  version / 1000, toolkit));
  overlaps_launches_ = version >= kOverlapDriver;
  status = api_->retain_context(&context_, device);
  return status == kDriverSuccess ? ok_status() : refused(status, "create its context");
}

Status Device::load(Unit unit) {
  ModuleHandle& module = modules_[static_cast<int>(unit)];
  if (module != nullptr) return ok_status();
  const DriverResult status = api_->load_module(&module, images_[static_cast<int>(unit)]);
  if (status == kDriverNoCode)
    return unsupported(
        "the module of CUDA kernels has no code for compute capability %a.%b; build it with "
        "SINTER_CUDA_ARCHITECTURES of "
        "this device",
        facts_.capability / 10, facts_.capability % 10);
  return status == kDriverSuccess ? ok_status() : failure(status, "load kernels for this device");
}

Status Device::function(Kernel kernel, FunctionHandle* function) {
  const CreationGuard guard(lock_);
  FunctionHandle& known = functions_[static_cast<int>(kernel)];
  if (known == nullptr) {
    const InContext current(*this);
    SINTER_RETURN_IF_ERROR(load(unit_of(kernel)));
    FunctionHandle found = nullptr;
    DriverResult status =
        api_->module_function(&found, modules_[static_cast<int>(unit_of(kernel))], kernel_name(kernel));
    if (status == kDriverSuccess)
      status = api_->set_function_attribute(found, kMaxDynamicSharedBytes, static_cast<int>(kMostShared));
    int architecture = 0;
    if (status == kDriverSuccess && overlaps_launches_)
      status = api_->function_attribute(&architecture, kVirtualArchitecture, found);
    if (status != kDriverSuccess) return failure(status, "find a kernel");
    waits_[static_cast<int>(kernel)] = architecture >= kOverlapArchitecture;
    known = found;
  }
  *function = known;
  return ok_status();
}

}  // namespace sinter::cuda

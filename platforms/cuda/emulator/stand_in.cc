#include "platforms/cuda/emulator/stand_in.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platforms/cuda/emulator/device_memory.h"
#include "platforms/cuda/emulator/kernels.h"
#include "platforms/cuda/emulator/run.h"
#include "platforms/cuda/emulator/stream.h"

struct CUfunc_st {
  const sinter::cuda::emulator::HostKernel* kernel = nullptr;
  int shared_bytes = 48 << 10;  // that a launch may have
};
struct CUmod_st {
  std::map<std::string, CUfunc_st> functions;
};

struct CUctx_st {};

namespace sinter::cuda {
namespace {

// The state of the stand-in, which is never destroyed, because sessions may live until the program ends.
struct State {
  std::mutex mutex;
  std::map<void*, size_t> staging;
  std::vector<std::unique_ptr<CUmod_st>> modules;  // they live as long as the program
  CUctx_st context;
  std::atomic<const char*> failing{nullptr};
  DriverResult failing_with = kDriverSuccess;
};
State& state() {
  static State& all = *new State();
  return all;
}
thread_local int current_contexts = 0;

// Returns the result with which a test makes this call fail (fail_next), or kDriverSuccess.
DriverResult asked_to_fail(const char* entry) {
  const char* name = state().failing.load();
  if (name == nullptr || std::strcmp(name, entry) != 0) return kDriverSuccess;
  state().failing = nullptr;
  return state().failing_with;
}
#define SINTER_BEGIN(entry) \
  if (const DriverResult wanted = asked_to_fail(#entry); wanted != kDriverSuccess) return wanted

DriverResult in_context() { return current_contexts > 0 ? kDriverSuccess : kInvalidContext; }
#define SINTER_IN_CONTEXT(entry) \
  SINTER_BEGIN(entry);           \
  if (in_context() != kDriverSuccess) return kInvalidContext

std::byte* pointer(DeviceAddress a) { return reinterpret_cast<std::byte*>(a); }

DriverResult move_job(Job::Kind kind, void* to, const void* from, size_t bytes, StreamHandle stream) {
  if (stream == nullptr || bytes == 0) return kInvalidValue;
  if (kind != Job::Kind::kDownload && !emulator::is_on_device(to, bytes)) return kIllegalAddress;
  if (kind != Job::Kind::kUpload && !emulator::is_on_device(from, bytes)) return kIllegalAddress;
  Job* job = nullptr;
  if (const DriverResult done = next_job(stream, &job); done != kDriverSuccess) return done;
  job->kind = kind;
  job->to = static_cast<std::byte*>(to);
  job->from = static_cast<const std::byte*>(from);
  job->bytes = bytes;
  return kDriverSuccess;
}

// ---- the entry points

DriverResult init(unsigned) {
  SINTER_BEGIN(init);
  return kDriverSuccess;
}
DriverResult driver_version(int* version) { return *version = 13000, kDriverSuccess; }
DriverResult error_name(DriverResult result, const char** name) {
  switch (result) {
    case kDriverOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kDriverSuccess;
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      return kDriverSuccess;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      return kDriverSuccess;
    case kNotFound:
      *name = "CUDA_ERROR_NOT_FOUND";
      return kDriverSuccess;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kDriverSuccess;
    case kLaunchFailed:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      return kDriverSuccess;
    case kStreamCaptureInvalid:
      *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
      return kDriverSuccess;
    default:
      return kInvalidValue;
  }
}
DriverResult device_count(int* count) {
  SINTER_BEGIN(device_count);
  return *count = 1, kDriverSuccess;
}
DriverResult device_get(DeviceNumber* device, int) { return *device = 0, kDriverSuccess; }
DriverResult device_name(char* name, int bytes, DeviceNumber) {
  std::snprintf(name, static_cast<size_t>(bytes), "emulated");
  return kDriverSuccess;
}
DriverResult device_attribute(int* value, DeviceAttribute attribute, DeviceNumber) {
  switch (attribute) {
    case kMultiprocessorCount:
      return *value = 4, kDriverSuccess;
    case kCapabilityMajor:
      return *value = 8, kDriverSuccess;
    case kCapabilityMinor:
      return *value = 7, kDriverSuccess;
  }
  return kInvalidValue;
}
DriverResult retain_context(ContextHandle* context, DeviceNumber) {
  SINTER_BEGIN(retain_context);
  return *context = &state().context, kDriverSuccess;
}
DriverResult push_context(ContextHandle) { return ++current_contexts, kDriverSuccess; }
DriverResult pop_context(ContextHandle* context) {
  if (current_contexts == 0) return kInvalidContext;
  --current_contexts;
  return *context = &state().context, kDriverSuccess;
}

DriverResult load_module(ModuleHandle* module, const void*) {
  SINTER_IN_CONTEXT(load_module);
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().modules.push_back(std::make_unique<CUmod_st>());
  return *module = state().modules.back().get(), kDriverSuccess;
}
DriverResult module_function(FunctionHandle* function, ModuleHandle module, const char* name) {
  SINTER_IN_CONTEXT(module_function);
  const emulator::HostKernel* kernel = emulator::find_kernel(name);
  if (kernel == nullptr) return kNotFound;
  CUfunc_st& f = module->functions[name];
  f.kernel = kernel;
  return *function = &f, kDriverSuccess;
}
DriverResult function_attribute(int* value, FunctionAttribute attribute, FunctionHandle) {
  if (attribute != kVirtualArchitecture) return kInvalidValue;
  return *value = 90, kDriverSuccess;
}
DriverResult set_function_attribute(FunctionHandle function, FunctionAttribute attribute, int value) {
  if (attribute != kMaxDynamicSharedBytes || value > 64 << 10) return kInvalidValue;
  return function->shared_bytes = value, kDriverSuccess;
}

DriverResult allocate(DeviceAddress* address, size_t bytes) {
  SINTER_IN_CONTEXT(allocate);
  if (bytes == 0) return kInvalidValue;
  std::byte* block = emulator::allocate_device(bytes);
  if (block == nullptr) return kDriverOutOfMemory;
  count(&StandInCounts::allocations);
  count(&StandInCounts::bytes, static_cast<int64_t>(bytes));
  *address = reinterpret_cast<DeviceAddress>(block);
  return kDriverSuccess;
}
DriverResult free(DeviceAddress address) {
  const size_t bytes = emulator::free_device(pointer(address));
  if (bytes == 0) return kInvalidValue;
  count(&StandInCounts::frees);
  count(&StandInCounts::bytes, -static_cast<int64_t>(bytes));
  return kDriverSuccess;
}
DriverResult allocate_host(void** at, size_t bytes, unsigned) {
  SINTER_IN_CONTEXT(allocate_host);
  *at = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*at == nullptr) return kDriverOutOfMemory;
  const std::lock_guard<std::mutex> lock(state().mutex);
  count(&StandInCounts::staging_allocations);
  state().staging[*at] = bytes;
  return kDriverSuccess;
}
DriverResult free_host(void* at) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (state().staging.erase(at) == 0) return kInvalidValue;
  count(&StandInCounts::staging_frees);
  std::free(at);
  return kDriverSuccess;
}

DriverResult upload(DeviceAddress to, const void* from, size_t bytes, StreamHandle stream) {
  SINTER_IN_CONTEXT(upload);
  return move_job(Job::Kind::kUpload, pointer(to), from, bytes, stream);
}
DriverResult download(void* to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  SINTER_IN_CONTEXT(download);
  return move_job(Job::Kind::kDownload, to, pointer(from), bytes, stream);
}
DriverResult copy(DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  SINTER_IN_CONTEXT(copy);
  return move_job(Job::Kind::kCopy, pointer(to), pointer(from), bytes, stream);
}
DriverResult fill(DeviceAddress to, unsigned char value, size_t bytes, StreamHandle stream) {
  SINTER_IN_CONTEXT(fill);
  if (stream == nullptr || bytes == 0) return kInvalidValue;
  if (!emulator::is_on_device(pointer(to), bytes)) return kIllegalAddress;
  Job* job = nullptr;
  if (const DriverResult done = next_job(stream, &job); done != kDriverSuccess) return done;
  job->kind = Job::Kind::kFill;
  job->to = pointer(to);
  job->bytes = bytes;
  job->fill = value;
  return kDriverSuccess;
}

DriverResult create_stream(StreamHandle* stream, unsigned) {
  SINTER_IN_CONTEXT(create_stream);
  auto* made = new CUstream_st();
  made->jobs = static_cast<Job*>(std::aligned_alloc(64, CUstream_st::kRoom * sizeof(Job)));
  emulator::be_ready();
  return *stream = made, kDriverSuccess;
}
DriverResult destroy_stream(StreamHandle stream) {
  std::free(stream->jobs);
  delete stream->captured;
  delete stream;
  return kDriverSuccess;
}
DriverResult synchronize(StreamHandle stream) {
  SINTER_IN_CONTEXT(synchronize);
  if (stream->captured != nullptr) return kStreamCaptureInvalid;
  count(&StandInCounts::synchronizations);
  return finish(stream);
}

DriverResult create_event(EventHandle* event, unsigned) {
  SINTER_IN_CONTEXT(create_event);
  return *event = new CUevent_st(), kDriverSuccess;
}
DriverResult destroy_event(EventHandle event) { return delete event, kDriverSuccess; }
DriverResult record_event(EventHandle event, StreamHandle stream) {
  SINTER_IN_CONTEXT(record_event);
  if (stream == nullptr || stream->captured != nullptr) return kInvalidValue;
  event->stream = stream;
  event->jobs = stream->done + (stream->end - stream->begin);
  return kDriverSuccess;
}
DriverResult wait_for_event(StreamHandle stream, EventHandle event, unsigned) {
  SINTER_IN_CONTEXT(wait_for_event);
  if (stream == nullptr || event->stream == nullptr) return kInvalidValue;
  Job* job = nullptr;
  if (const DriverResult done = next_job(stream, &job); done != kDriverSuccess) return done;
  job->kind = Job::Kind::kWait;
  job->other = event->stream;
  job->other_jobs = event->jobs;
  return kDriverSuccess;
}

DriverResult begin_capture(StreamHandle stream, int) {
  SINTER_IN_CONTEXT(begin_capture);
  if (stream->captured != nullptr) return kStreamCaptureInvalid;
  stream->captured = new CUgraph_st();
  return kDriverSuccess;
}
DriverResult end_capture(StreamHandle stream, GraphHandle* graph) {
  SINTER_IN_CONTEXT(end_capture);
  if (stream->captured == nullptr) return kStreamCaptureInvalid;
  *graph = stream->captured;
  stream->captured = nullptr;
  return kDriverSuccess;
}
DriverResult instantiate(GraphExecHandle* exec, GraphHandle graph, unsigned long long) {
  SINTER_IN_CONTEXT(instantiate);
  count(&StandInCounts::graphs);
  return *exec = new CUgraphExec_st{graph->jobs}, kDriverSuccess;
}
DriverResult upload_graph(GraphExecHandle, StreamHandle) {
  SINTER_IN_CONTEXT(upload_graph);
  return kDriverSuccess;
}
DriverResult launch_graph(GraphExecHandle exec, StreamHandle stream) {
  SINTER_IN_CONTEXT(launch_graph);
  count(&StandInCounts::graph_launches);
  Job* job = nullptr;
  if (const DriverResult done = next_job(stream, &job); done != kDriverSuccess) return done;
  job->kind = Job::Kind::kGraph;
  job->graph = &exec->jobs;
  return kDriverSuccess;
}
DriverResult destroy_graph_exec(GraphExecHandle exec) { return delete exec, kDriverSuccess; }
DriverResult destroy_graph(GraphHandle graph) { return delete graph, kDriverSuccess; }

// A launch begins when the one before it has ended, as every attribute permits.
DriverResult launch(const LaunchConfig* config, FunctionHandle function, void** arguments, void** extra) {
  SINTER_IN_CONTEXT(launch);
  const emulator::HostKernel& kernel = *function->kernel;
  const auto& [x, y, z] = config->blocks;
  const bool attributes_known =
      config->attribute_count == 0 ||
      (config->attribute_count == 1 && config->attributes->id == kProgrammaticSerialization);
  if (extra != nullptr || !attributes_known || config->threads[1] != 1 || config->threads[2] != 1 ||
      config->threads[0] != static_cast<unsigned>(kernel.threads) || x == 0 || y == 0 || z == 0 ||
      x > INT32_MAX || y > 65535 || z > 65535 ||
      config->shared_bytes > static_cast<unsigned>(function->shared_bytes))
    return kInvalidValue;
  Job* job = nullptr;
  if (const DriverResult done = next_job(config->stream, &job); done != kDriverSuccess) return done;
  if (config->attribute_count > 0 && config->attributes->value.allowed != 0)
    count(&StandInCounts::overlapping_launches);
  job->kind = Job::Kind::kLaunch;
  job->kernel = &kernel;
  job->grid = {{x, y, z}, kernel.threads, config->shared_bytes, kernel.cooperates};
  std::memcpy(job->arguments, arguments[0], kernel.argument_bytes);
  return kDriverSuccess;
}

constexpr EntryPoints kEntries = {
#define SINTER_CUDA_ENTRY(field, symbol, ...) .field = field,
#include "platforms/cuda/driver/entry_points.def"
#undef SINTER_CUDA_ENTRY
};

constexpr StandIn kStandIn = {kKernelNames, &kEntries, emulator::fence_off};

}  // namespace

void fail_next(const char* entry, DriverResult result) {
  state().failing_with = result;
  state().failing = entry;
}

}  // namespace sinter::cuda

extern "C" const sinter::cuda::StandIn* sinter_cuda_stand_in() { return &sinter::cuda::kStandIn; }

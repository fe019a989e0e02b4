#include "platforms/cuda/queue.h"

#include <cstring>

namespace sinter::cuda {
namespace {

DeviceAddress address(const void* p) { return reinterpret_cast<DeviceAddress>(p); }

// Names of the driver's tasks, for Device::failure.
constexpr char kToTransfer[] = "transfer data", kToLaunch[] = "launch a kernel", kToWait[] = "wait for a run",
               kToCapture[] = "capture a graph", kToStream[] = "create a stream",
               kToStart[] = "launch a graph", kToOrder[] = "order two streams";

const char* text_of(FaultCode code) {
  switch (code) {
    case FaultCode::kIndex:
      return "an index is out of range (element %a)";
    case FaultCode::kLength:
      return "a length is out of range (element %a)";
    case FaultCode::kNone:
      break;
  }
  return "the device reports a fault (element %a)";
}

}  // namespace

Status Queue::open(Device& device, const QueueMemory& memory, Queue** queue) {
  *queue = nullptr;
  void* own = memory.prepared.allocate(sizeof(Queue), alignof(Queue));
  auto* key = static_cast<FaultKey*>(memory.device_prepared.allocate(sizeof(FaultKey), kBufferAlignment));
  auto* key_staging = static_cast<FaultKey*>(memory.staging.allocate(sizeof(FaultKey), kBufferAlignment));
  if (memory.prepared.measuring()) return ok_status();
  SINTER_RETURN_UNLESS(own != nullptr && key != nullptr && key_staging != nullptr,
                       error(Code::kInternal, "the memory of a queue is too small"));
  auto* made = new (own) Queue(device, key, key_staging);
  const InContext current(device);
  DriverResult created = device.api().create_stream(&made->stream_, kStreamNonBlocking);
  if (created != kDriverSuccess) return device.failure(created, kToStream);
  created = device.api().create_event(&made->event_, kEventWithoutTiming);
  if (created != kDriverSuccess) return made->close(), device.failure(created, kToStream);
  const Status cleared = made->clear_key();
  if (!cleared.ok()) return made->close(), cleared;
  *queue = made;
  return made->finish();
}

void Queue::close() {
  const InContext current(device_);
  (void)device_.api().synchronize(stream_);
  if (event_ != nullptr) (void)device_.api().destroy_event(event_);
  (void)device_.api().destroy_stream(stream_);
  this->~Queue();
}

Status Queue::clear_key() {
  *key_staging_ = kNoFault;
  busy_ = true;
  const DriverResult filled = device_.api().fill(address(key_), 0xff, sizeof(FaultKey), stream_);
  return filled == kDriverSuccess ? ok_status() : device_.failure(filled, kToTransfer);
}

// Brings the key to staging memory.
Status Queue::take_key() {
  const DriverResult taken = device_.api().download(key_staging_, address(key_), sizeof(FaultKey), stream_);
  return taken == kDriverSuccess ? ok_status() : device_.failure(taken, kToTransfer);
}

// ---- transfers

Status Queue::upload(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return ok_status();
  busy_ = true;
  const InContext current(device_);
  const DriverResult done = device_.api().upload(address(to), from, bytes, stream_);
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToTransfer);
}

Status Queue::download(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return ok_status();
  busy_ = true;
  const InContext current(device_);
  const DriverResult done = device_.api().download(to, address(from), bytes, stream_);
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToTransfer);
}

Status Queue::copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return ok_status();
  busy_ = true;
  const InContext current(device_);
  const DriverResult done = device_.api().copy(address(to), address(from), bytes, stream_);
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToTransfer);
}

Status Queue::zero(std::byte* at, size_t bytes) {
  if (bytes == 0) return ok_status();
  busy_ = true;
  const InContext current(device_);
  const DriverResult done = device_.api().fill(address(at), 0, bytes, stream_);
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToTransfer);
}

Status Queue::finish() {
  if (!busy_) return ok_status();
  busy_ = false;
  DriverResult done;
  {
    const InContext current(device_);
    done = device_.api().synchronize(stream_);
  }
  Step* step = first_pending_;
  first_pending_ = last_pending_ = nullptr;
  for (; step != nullptr; step = step->next_pending) {
    step->pending = false;
    if (done == kDriverSuccess) std::memcpy(step->host, step->staging, step->bytes);
  }
  if (done != kDriverSuccess) return device_.failure(done, kToWait);
  if (*key_staging_ == kNoFault) [[likely]]
    return ok_status();
  const FaultKey key = *key_staging_;
  const InContext current(device_);
  SINTER_RETURN_IF_ERROR(clear_key());
  const auto code = static_cast<FaultCode>(key & ((1u << kFaultCodeBits) - 1));
  const auto position =
      static_cast<int64_t>((key >> kFaultCodeBits) & ((FaultKey{1} << kFaultPositionBits) - 1));
  const Step* failed = first_failing_;
  for (FaultKey n = key >> (kFaultCodeBits + kFaultPositionBits); n > 0 && failed != nullptr; --n)
    failed = failed->next_failing;
  const Status fault = error(Code::kOutOfRange, text_of(code), position);
  return failed != nullptr ? fault.at_step(failed->number, failed->program) : fault;
}

// ---- streams of callers

Status Queue::order(StreamHandle first, StreamHandle second) {
  const InContext current(device_);
  DriverResult done = device_.api().record_event(event_, first);
  if (done == kDriverSuccess) done = device_.api().wait_for_event(second, event_, 0);
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToOrder);
}

Status Queue::begin_after(void* stream) { return order(static_cast<StreamHandle>(stream), stream_); }

Status Queue::end_before(void* stream) { return order(stream_, static_cast<StreamHandle>(stream)); }

// ---- steps

Status Queue::start_action(const Action& action) {
  if (action.kind == Action::Kind::kFill) {
    behind_kernel_ = false;
    const DriverResult done = device_.api().fill(address(action.to), action.fill, action.bytes, stream_);
    return done == kDriverSuccess ? ok_status() : device_.failure(done, kToTransfer);
  }
  FunctionHandle function = nullptr;
  SINTER_RETURN_IF_ERROR(device_.function(action.kernel, &function));
  void* arguments[] = {const_cast<void*>(action.arguments)};
  const Blocks& blocks = action.shape.blocks;
  LaunchAttribute overlap;
  overlap.value.allowed = 1;
  const LaunchConfig config{
      .blocks = {blocks[0], blocks[1], blocks[2]},
      .threads = {static_cast<unsigned>(threads_of(action.kernel)), 1, 1},
      .shared_bytes = action.shape.shared_bytes,
      .stream = stream_,
      .attributes = &overlap,
      .attribute_count = behind_kernel_ && device_.may_overlap(action.kernel) ? 1u : 0u};
  const DriverResult done = device_.api().launch(&config, function, arguments, nullptr);
  behind_kernel_ = true;
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToLaunch);
}

// Puts the step's work (that of its chain, or its own if `alone`) into the stream, which may be captured.
// Uploads are in staging memory by then.
Status Queue::start(const Step& step, bool alone) {
  if (!alone && step.in_chain) return ok_status();
  if (!alone && step.heads_chain) return start_action(*step.chain);
  DriverResult done = kDriverSuccess;
  if (alone || step.kind != Step::Kind::kKernels) behind_kernel_ = false;
  if (step.kind == Step::Kind::kUpload && step.bytes > 0)
    done = device_.api().upload(address(step.device), step.staging, step.bytes, stream_);
  if (step.kind == Step::Kind::kDownload && step.bytes > 0)
    done = device_.api().download(step.staging, address(step.device), step.bytes, stream_);
  if (done != kDriverSuccess) return device_.failure(done, kToTransfer);
  for (const Action* a = step.actions; a != nullptr; a = Lowering::next(a))
    SINTER_RETURN_IF_ERROR(start_action(*a));
  return ok_status();
}

Status Queue::add(Step* step) {
  // An upload may have the bytes of a download: a graph has either, and its run waits for the other's.
  if (step->kind == Step::Kind::kUpload && downloads_) SINTER_RETURN_IF_ERROR(end_group());
  downloads_ = downloads_ || step->kind == Step::Kind::kDownload;
  step->queue = this;
  if (step->can_fail) {
    (last_failing_ != nullptr ? last_failing_->next_failing : first_failing_) = step;
    last_failing_ = step;
    ++failing_;
  }
  if (first_ == nullptr)
    first_ = step;
  else
    last_->next = step;
  step->group = first_;
  last_ = step;
  return ok_status();
}

Status Queue::end_group() {
  if (first_ == nullptr) return ok_status();
  Step& first = *first_;
  // Only the first step of a chain is run.
  for (Step* s = &first; s != nullptr; s = s->next)
    if (!s->in_chain) last_ = s;
  last_->last = true;
  first_ = last_ = nullptr;
  downloads_ = false;
  return capture(first);
}

Status Queue::capture(Step& first) {
  const EntryPoints& api = device_.api();
  const InContext current(device_);
  DriverResult done = api.begin_capture(stream_, kCaptureThreadLocal);
  if (done != kDriverSuccess) return device_.failure(done, kToCapture);
  Status status;
  bool can_fail = false;
  behind_kernel_ = false;
  for (const Step* s = &first; s != nullptr && status.ok(); s = s->next) {
    status = start(*s, false);
    can_fail = can_fail || s->can_fail;
  }
  if (status.ok() && can_fail) status = take_key();
  GraphHandle graph = nullptr;
  done = api.end_capture(stream_, &graph);  // also after an error
  if (status.ok() && done != kDriverSuccess) status = device_.failure(done, kToCapture);
  if (status.ok()) {
    done = api.instantiate(&first.graph, graph, 0);
    if (done == kDriverSuccess) done = api.upload_graph(first.graph, stream_);
    if (done != kDriverSuccess) status = device_.failure(done, kToCapture);
    busy_ = true;
  }
  if (graph != nullptr) (void)api.destroy_graph(graph);
  return status;
}

void Queue::drop(Step* step) {
  if (step->graph == nullptr) return;
  const InContext current(device_);
  (void)device_.api().destroy_graph_exec(step->graph);
  step->graph = nullptr;
}

Status Queue::run(Step& step) {
  if (step.kind == Step::Kind::kUpload && first_pending_ != nullptr) SINTER_RETURN_IF_ERROR(finish());
  busy_ = true;
  if (step.kind == Step::Kind::kUpload) std::memcpy(step.staging, step.host, step.bytes);
  if (step.kind == Step::Kind::kDownload && !step.pending) {
    step.pending = true;
    step.next_pending = nullptr;
    (last_pending_ != nullptr ? last_pending_->next_pending : first_pending_) = &step;
    last_pending_ = &step;
  }
  if (stepwise_ || step.group->graph == nullptr) {
    const InContext current(device_);
    SINTER_RETURN_IF_ERROR(start(step, true));
    return step.can_fail ? take_key() : ok_status();
  }
  if (!step.last) return ok_status();
  const InContext current(device_);
  const DriverResult done = device_.api().launch_graph(step.group->graph, stream_);
  return done == kDriverSuccess ? ok_status() : device_.failure(done, kToStart);
}

}  // namespace sinter::cuda

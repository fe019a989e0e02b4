#include "platforms/cuda/device_backend.h"

#include <cstring>

#include "platforms/cuda/call_digest.h"
#include "platforms/cuda/chain.h"
#include "platforms/cuda/operators.h"
#include "platforms/cuda/queue.h"

namespace sinter::cuda {
namespace {

constexpr char kToAllocate[] = "allocate memory";
const Status kDisagree =
    error(Code::kInternal, "the CUDA platform takes more memory for a step than it measured");

bool is_transfer(const OpCall& call) {
  return call.op == Op::kCopy && !call.in(0).constant && call.in(0).memory != call.out(0).memory;
}

// Checks that the call's operands are in the memory in which a step of the device has them.
Status check_places(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& v = call.in(i);
    if (!v.present()) continue;
    SINTER_RETURN_UNLESS(v.constant ? v.memory == 0 && i < 32 : v.memory != 0,
                         unsupported("an operand is not in device memory"));
  }
  for (const TensorView& v : call.outputs)
    SINTER_RETURN_UNLESS(!v.present() || v.memory != 0, unsupported("a result is not in device memory"));
  return ok_status();
}

Status lower(Lowering& l) {
  const auto function = operator_of(l.call().op);
  SINTER_RETURN_UNLESS(function != nullptr, unsupported("the CUDA platform does not compute this operation"));
  SINTER_RETURN_IF_ERROR(function(l));
  SINTER_RETURN_UNLESS(!l.exhausted(),
                       unsupported("the call needs more memory or constants than a step can have"));
  return ok_status();
}

// Writes a dense copy of a view's elements.
void gather(const TensorView& view, std::byte* to) {
  const size_t width = byte_width(view.dtype);
  int64_t at[kMaxRank] = {};
  for (int64_t n = view.size(); n > 0; --n, to += width) {
    int64_t offset = 0;
    for (int i = 0; i < view.rank; ++i) offset += at[i] * view.strides[i];
    std::memcpy(to, view.data + offset, width);
    for (int i = view.rank - 1; i >= 0 && ++at[i] == view.dims[i]; --i) at[i] = 0;
  }
}

// Brings the step's constants to the device; `scratch` is free again afterwards.
Status bring(const Lowering& l, Queue& queue, std::span<std::byte> scratch) {
  for (const Upload& u : l.uploads()) {
    const std::byte* from = scratch.data();
    const std::span<std::byte> room = scratch.first(u.bytes < scratch.size() ? u.bytes : scratch.size());
    if (u.input < 0) {
      u.pack(l.call(), room);
    } else if (const TensorView& v = l.call().in(static_cast<size_t>(u.input)); v.dense()) {
      from = v.data;
    } else {
      gather(v, room.data());
    }
    SINTER_RETURN_IF_ERROR(queue.upload(u.to, from, u.bytes));
    SINTER_RETURN_IF_ERROR(queue.finish());
  }
  return ok_status();
}

Status run_step(void* state, const OpCall&, RunContext&) {
  Step& step = *static_cast<Step*>(state);
  return step.queue->run(step);
}

}  // namespace

Status DeviceBackend::open(BumpArena&) { return device_.open(); }

Status DeviceBackend::open_queue(const QueueMemory& memory, DeviceQueue** queue) {
  Queue* made = nullptr;
  const Status status = Queue::open(device_, memory, &made);
  *queue = made;
  return status;
}

void DeviceBackend::close_queue(DeviceQueue* queue) { static_cast<Queue*>(queue)->close(); }

Status DeviceBackend::measure(const OpCall& call, int, StepNeeds* needs) {
  *needs = {};
  needs->call = CallUse::kUnused;
  needs->prepared = align_up(sizeof(Step), kBufferAlignment);
  if (is_transfer(call)) {
    SINTER_RETURN_UNLESS(call.in(0).dense() && call.out(0).dense(),
                         unsupported("a transfer's operand is not dense"));
    needs->staging = align_up(static_cast<size_t>(call.in(0).dense_bytes()), kBufferAlignment);
    return ok_status();
  }
  SINTER_RETURN_IF_ERROR(check_places(call));
  Lowering l(call);
  SINTER_RETURN_IF_ERROR(lower(l));
  needs->prepared += align_up(l.prepared_bytes(), kBufferAlignment);
  size_t arguments = 0;
  if (l.is_launch_of(is_element_kernel, &arguments))
    needs->prepared += align_up(sizeof(Action), kBufferAlignment) + align_up(arguments, kBufferAlignment);
  needs->workspace = l.workspace_bytes();
  needs->scratch = l.scratch_bytes();
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (l.is_constant(i)) needs->packed |= 1u << i;
  // The packing has all constants of the step, as it reads them.
  needs->packing.bytes = align_up(l.device_prepared_bytes(), kBufferAlignment);
  needs->packing.inputs = needs->packed;
  needs->packing.parameters[0] = static_cast<int64_t>(call.op);
  CallDigest digest(call);
  needs->packing.parameters[1] = digest.low();
  needs->packing.parameters[2] = digest.high();
  return ok_status();
}

Status DeviceBackend::pack_on_device(const OpCall& call, std::span<std::byte> packed, DeviceQueue& queue,
                                     std::span<std::byte> scratch) {
  BumpArena there(packed);
  Lowering l(call, there);
  SINTER_RETURN_IF_ERROR(lower(l));
  return bring(l, static_cast<Queue&>(queue), scratch);
}

Status DeviceBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* prepared) {
  void* memory = with.prepared.allocate(sizeof(Step), kBufferAlignment);
  SINTER_RETURN_UNLESS(memory != nullptr && with.queue != nullptr, kDisagree);
  Queue& queue = *static_cast<Queue*>(with.queue);
  auto* step = new (memory) Step();
  prepared->run = run_step;
  prepared->state = step;
  if (is_transfer(call)) {
    const bool up = call.in(0).memory == 0;
    step->kind = up ? Step::Kind::kUpload : Step::Kind::kDownload;
    step->bytes = static_cast<size_t>(call.in(0).dense_bytes());
    step->host = up ? call.in(0).data : call.out(0).data;
    step->device = up ? call.out(0).data : call.in(0).data;
    step->staging = static_cast<std::byte*>(
        with.staging->allocate(align_up(step->bytes, kBufferAlignment), kBufferAlignment));
    SINTER_RETURN_UNLESS(step->staging != nullptr || step->bytes == 0, kDisagree);
    return queue.add(step);
  }
  (void)with.prepared.allocate(0, kBufferAlignment);
  // Only the addresses are needed: pack_on_device() has filled it.
  BumpArena constants({const_cast<std::byte*>(with.packed.data()), with.packed.size()});
  Lowering l(call, device_.facts(), queue.fault_place(), with.workspace, with.prepared, constants);
  SINTER_RETURN_IF_ERROR(lower(l));
  step->actions = l.first_action();
  size_t arguments = 0;
  if (l.is_launch_of(is_element_kernel, &arguments)) {
    void* chain = with.prepared.allocate(align_up(sizeof(Action), kBufferAlignment), kBufferAlignment);
    void* room = with.prepared.allocate(align_up(arguments, kBufferAlignment), kBufferAlignment);
    SINTER_RETURN_UNLESS(chain != nullptr && room != nullptr, kDisagree);
    step->chain = new (chain) Action();
    step->chain->arguments = room;
  }
  step->can_fail = l.can_fail();
  step->program = with.program;
  step->number = static_cast<uint32_t>(with.step);
  for (const Action* a = step->actions; a != nullptr; a = Lowering::next(a)) {
    FunctionHandle function = nullptr;
    if (a->kind == Action::Kind::kLaunch) SINTER_RETURN_IF_ERROR(device_.function(a->kernel, &function));
  }
  return queue.add(step);
}

// Steps that follow each other element by element become one launch.
bool DeviceBackend::fuse(const PreparedStep& first, const PreparedStep& next) {
  Step &head = *static_cast<Step*>(first.state), &step = *static_cast<Step*>(next.state);
  if (head.chain == nullptr || step.chain == nullptr || head.group != step.group) return false;
  ElementChain chain;
  if (!chain.begin(head.heads_chain ? *head.chain : *head.actions) || !chain.append(*step.actions))
    return false;
  Action joined = chain.action();
  void* room = const_cast<void*>(head.chain->arguments);
  std::memcpy(room, joined.arguments, joined.argument_bytes);
  joined.arguments = room;
  *head.chain = joined;
  head.heads_chain = step.in_chain = true;
  return true;
}

const char* DeviceBackend::kernel_name(const PreparedStep& prepared) const {
  const Action* a = static_cast<const Step*>(prepared.state)->actions;
  while (a != nullptr && a->kind != Action::Kind::kLaunch) a = Lowering::next(a);
  return a != nullptr ? cuda::kernel_name(a->kernel) : nullptr;
}

void DeviceBackend::release(PreparedStep& prepared) {
  auto* step = static_cast<Step*>(prepared.state);
  step->queue->drop(step);
}

// ---- memory

Status DeviceBackend::allocate(size_t bytes, size_t alignment, std::byte** block) {
  SINTER_RETURN_IF_ERROR(device_.open());
  const InContext current(device_);
  DeviceAddress at = 0;
  const DriverResult done = device_.api().allocate(&at, bytes > 0 ? bytes : 1);
  if (done != kDriverSuccess) return device_.failure(done, kToAllocate);
  *block = reinterpret_cast<std::byte*>(at);
  if (at % alignment == 0) return ok_status();
  free(*block);
  return error(Code::kInternal, "the CUDA driver gives memory that is not aligned to %a bytes",
               static_cast<int64_t>(alignment));
}

void DeviceBackend::free(std::byte* block) {
  const InContext current(device_);
  (void)device_.api().free(reinterpret_cast<DeviceAddress>(block));
}

Status DeviceBackend::allocate_staging(size_t bytes, std::byte** block) {
  SINTER_RETURN_IF_ERROR(device_.open());
  const InContext current(device_);
  void* at = nullptr;
  const DriverResult done = device_.api().allocate_host(&at, bytes > 0 ? bytes : 1, kHostAllocPortable);
  if (done != kDriverSuccess) return device_.failure(done, kToAllocate);
  *block = static_cast<std::byte*>(at);
  return ok_status();
}

void DeviceBackend::free_staging(std::byte* block) {
  const InContext current(device_);
  (void)device_.api().free_host(block);
}

}  // namespace sinter::cuda

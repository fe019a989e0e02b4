#include "tests/memory/far_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "runtime/kernels/reference.h"

namespace sinter::test {
namespace {

// Bytes from the first element to the end of the last.
size_t extent(const TensorView& v) {
  size_t bytes = byte_width(v.dtype);
  for (int i = 0; i < v.rank; ++i) {
    if (v.dims[i] == 0) return 0;
    bytes += static_cast<size_t>((v.dims[i] - 1) * v.strides[i]);
  }
  return v.dense() ? static_cast<size_t>(v.dense_bytes()) : bytes;
}

// Whether a kernel reads it from the device: a constant is brought there when the step is prepared.
bool is_constant(const TensorView& v) { return v.present() && v.constant; }

size_t room_for(const TensorView& v) {
  return align_up(static_cast<size_t>(v.dense_bytes()) + kReadPadding, kBufferAlignment);
}

bool is_transfer(const OpCall& call) {
  return call.op == Op::kCopy && !is_constant(call.in(0)) && call.in(0).memory != call.out(0).memory;
}

// No system call: a session's run is watched for them.
void spin() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct FarBackend::Step {
  FarBackend* device = nullptr;
  const Kernel* kernel = nullptr;
  OpCall call;  // with addresses that the worker can use
  RunContext context;
  int32_t number = -1;
  uint32_t program = 0;
};

FarBackend::FarBackend(const char* name, size_t most) : capacity(most), name_(name) {
  const auto map = [](int protection) {
    void* at = mmap(nullptr, kReserved, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at != MAP_FAILED ? static_cast<std::byte*>(at) : throw std::bad_alloc();
  };
  range_ = map(PROT_NONE);
  storage_ = map(PROT_READ | PROT_WRITE);
  worker_ = std::thread([this] { work_through(); });
}

FarBackend::~FarBackend() {
  stop_ = true;
  worker_.join();
  munmap(range_, kReserved);
  munmap(storage_, kReserved);
}

bool FarBackend::is_far(const void* p) const {
  return p >= static_cast<const void*>(range_) && p < static_cast<const void*>(range_ + kReserved);
}
bool FarBackend::within_block(const std::byte* p, size_t bytes) const {
  for (const Block& b : blocks_)
    if (p >= b.at && p <= b.at + b.bytes && bytes <= static_cast<size_t>(b.at + b.bytes - p)) return true;
  return false;
}
size_t FarBackend::allocated() const {
  size_t sum = 0;
  for (const Block& b : blocks_) sum += b.bytes;
  return sum;
}
Status FarBackend::wrong(const char* why) {
  ++counts_.wrong;
  return error(Code::kInternal, why);
}
bool FarBackend::takes(Op op) const {
  return op == Op::kCopy || accepts.empty() || std::find(accepts.begin(), accepts.end(), op) != accepts.end();
}

// ---- memory

Status FarBackend::allocate(size_t bytes, size_t alignment, std::byte** block) {
  if (bytes > capacity - std::min(capacity, allocated()))
    return error(Code::kOutOfMemory, "%a bytes requested, %b available", static_cast<int64_t>(bytes),
                 static_cast<int64_t>(capacity - allocated()));
  std::byte* at = range_ + 4096;  // behind the last block, with a gap
  for (const Block& b : blocks_) at = std::max(at, b.at + align_up(b.bytes, 4096) + 4096);
  if (alignment > 4096 || bytes > static_cast<size_t>(range_ + kReserved - at))
    return error(Code::kOutOfMemory, "no room for %a bytes", static_cast<int64_t>(bytes));
  std::memset(behind(at), 0xa5, bytes);
  blocks_.push_back({at, bytes});
  ++counts_.allocations;
  *block = at;
  return ok_status();
}

void FarBackend::free(std::byte* block) {
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i].at == block) {
      blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  ++counts_.wrong;
}

Status FarBackend::upload(std::byte* to, const std::byte* from, size_t bytes) {
  if (!within_block(to, bytes) || is_far(from)) return wrong("an upload between the wrong memories");
  ++counts_.uploads, counts_.bytes_up += static_cast<int64_t>(bytes);
  start({nullptr, behind(to), from, bytes});
  return ok_status();
}
Status FarBackend::download(std::byte* to, const std::byte* from, size_t bytes) {
  if (!within_block(from, bytes) || is_far(to)) return wrong("a download between the wrong memories");
  ++counts_.downloads, counts_.bytes_down += static_cast<int64_t>(bytes);
  start({nullptr, to, behind(from), bytes});
  return ok_status();
}
Status FarBackend::copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (!within_block(to, bytes) || !within_block(from, bytes)) return wrong("a copy outside of the device");
  ++counts_.copies;
  start({nullptr, behind(to), behind(from), bytes});
  return ok_status();
}
Status FarBackend::zero(std::byte* at, size_t bytes) {
  if (!within_block(at, bytes)) return wrong("zeros outside of the device");
  ++counts_.zeros;
  start({nullptr, behind(at), nullptr, bytes});
  return ok_status();
}

// ---- steps

Status FarBackend::open(BumpArena&) {
  ++counts_.opened;
  return ok_status();
}

Status FarBackend::open_queue(const QueueMemory& memory, DeviceQueue** queue) {
  group_ = 0;
  const auto* at = static_cast<std::byte*>(memory.device_prepared.allocate(own, kBufferAlignment));
  const bool measuring = memory.device_prepared.measuring();
  if (!measuring && !within_block(at, own)) return wrong("no memory for the queue itself");
  *queue = measuring ? nullptr : this;
  return ok_status();
}

Status FarBackend::measure(const OpCall& call, int, StepNeeds* needs) {
  *needs = {};
  SINTER_RETURN_IF_ERROR(refusal);
  SINTER_RETURN_UNLESS(takes(call.op), unsupported("it is not one of its operations"));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& v = call.in(i);
    if (is_constant(v)) {
      SINTER_RETURN_UNLESS(v.memory == 0 && i < 32, unsupported("a constant in device memory"));
      if (!keeps_constants) needs->packed |= 1u << i;
      needs->device_prepared += room_for(v);
    } else if (v.present() && v.memory == 0 && !is_transfer(call)) {
      return unsupported("an operand in host memory");
    }
  }
  for (const TensorView& v : call.outputs)
    if (v.present() && v.memory == 0 && !is_transfer(call)) return unsupported("a result in host memory");
  const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(call.op))];
  SINTER_RETURN_UNLESS(kernel != nullptr && kernel->run != nullptr,
                       unsupported("no kernel for this operation"));
  if (kernel->accept != nullptr) SINTER_RETURN_IF_ERROR(kernel->accept(call));
  if (kernel->workspace != nullptr) SINTER_RETURN_IF_ERROR(kernel->workspace(call, 1, &needs->workspace));
  needs->prepared = align_up(sizeof(Step), 64) +
                    align_up((call.inputs.size() + call.outputs.size()) * sizeof(TensorView), 64) +
                    align_up(attrs_bytes(call.op), 64);
  needs->call = CallUse::kUnused;
  return ok_status();
}

Status FarBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* out) {
  ++counts_.prepared;
  ++group_;
  const size_t count = call.inputs.size() + call.outputs.size();
  auto* memory = with.prepared.allocate(sizeof(Step), 64);
  auto* views = static_cast<TensorView*>(with.prepared.allocate(count * sizeof(TensorView), 64));
  auto* attributes = with.prepared.allocate(attrs_bytes(call.op), 64);
  SINTER_RETURN_UNLESS(memory != nullptr && views != nullptr && attributes != nullptr,
                       wrong("too little memory"));
  auto* step = new (memory) Step();
  // Lists among the attributes refer to the model's file, which stays.
  std::memcpy(attributes, call.attributes, attrs_bytes(call.op));
  for (size_t i = 0; i < count; ++i) {
    const TensorView& v = i < call.inputs.size() ? call.in(i) : call.out(i - call.inputs.size());
    new (views + i) TensorView(v);
    views[i].memory = 0;
    if (!v.present()) continue;
    if (is_constant(v)) {
      auto* at = static_cast<std::byte*>(with.device_prepared.allocate(room_for(v), kBufferAlignment));
      SINTER_RETURN_UNLESS(at != nullptr && v.data != nullptr && !is_far(v.data),
                           wrong("a constant without data"));
      SINTER_RETURN_IF_ERROR(upload(at, v.data, static_cast<size_t>(v.dense_bytes())));
      --counts_.uploads, counts_.bytes_up -= v.dense_bytes();  // no part of any run
      views[i].data = behind(at);
    } else if (v.memory != 0) {
      SINTER_RETURN_UNLESS(within_block(v.data, extent(v)), wrong("an operand outside of the device"));
      views[i].data = behind(v.data);
    } else {
      SINTER_RETURN_UNLESS(is_transfer(call) && !is_far(v.data), wrong("an operand of another memory"));
    }
  }
  step->device = this;
  step->kernel = reference_kernels()[static_cast<size_t>(op_index(call.op))];
  step->call = {
      call.op, attributes, {views, call.inputs.size()}, {views + call.inputs.size(), call.outputs.size()}};
  step->number = with.step;
  step->program = with.program;
  if (!with.workspace.empty()) {
    SINTER_RETURN_UNLESS(within_block(with.workspace.data(), with.workspace.size()),
                         wrong("a workspace of the host"));
    step->context.workspace = {behind(with.workspace.data()), with.workspace.size()};
  }
  out->run = run_step;
  out->state = step;
  return finish_quietly();  // constants may be gone when this returns
}

Status FarBackend::end_group() {
  ++counts_.groups;
  counts_.largest_group = std::max(counts_.largest_group, group_);
  group_ = 0;
  return ok_status();
}

Status FarBackend::run_step(void* state, const OpCall&, RunContext&) {
  auto* step = static_cast<Step*>(state);
  FarBackend& device = *step->device;
  const TensorView &in = step->call.in(0), &out = step->call.out(0);
  const bool from_here = !device.is_stored(in), to_here = !device.is_stored(out);
  if (step->call.op == Op::kCopy && from_here != to_here) {
    if (from_here)
      ++device.counts_.uploads, device.counts_.bytes_up += in.dense_bytes();
    else
      ++device.counts_.downloads, device.counts_.bytes_down += in.dense_bytes();
  } else {
    ++device.counts_.steps;
  }
  device.start({step, nullptr, nullptr, 0});
  return ok_status();
}

// ---- the worker

void FarBackend::start(const Job& job) {
  const uint64_t at = started_.load(std::memory_order_relaxed);
  if (at - done_.load(std::memory_order_acquire) == kRing) wait_until(at - kRing + 1);
  ring_[at % kRing] = job;
  started_.store(at + 1, std::memory_order_release);
  if (work == Work::kAtOnce) released_.store(at + 1, std::memory_order_release);
}

void FarBackend::wait_until(uint64_t done) {
  released_.store(started_.load(std::memory_order_relaxed), std::memory_order_release);
  while (done_.load(std::memory_order_acquire) < done) spin();
}

Status FarBackend::finish() {
  ++counts_.finishes;
  if (ignore_finish > 0 && --ignore_finish == 0) return ok_status();
  return finish_quietly();
}

Status FarBackend::finish_quietly() {
  wait_until(started_.load(std::memory_order_relaxed));
  const Status found = failure_;  // the worker waits for work
  failure_ = ok_status();
  return found;
}

void FarBackend::work_through() {
  int idle = 0;
  for (uint64_t at = 0; !stop_.load(std::memory_order_relaxed);) {
    if (at == released_.load(std::memory_order_acquire)) {
      if (++idle > 1000) std::this_thread::sleep_for(std::chrono::microseconds(50));
      continue;
    }
    idle = 0;
    const Job& job = ring_[at % kRing];
    if (!failure_.ok()) {
      // Left out.
    } else if (job.step != nullptr) {
      failure_ = job.step->kernel->run(job.step->call, job.step->context)
                     .at_step(static_cast<uint32_t>(job.step->number), job.step->program);
    } else if (job.from != nullptr) {
      std::memcpy(job.to, job.from, job.bytes);
    } else {
      std::memset(job.to, 0, job.bytes);
    }
    done_.store(++at, std::memory_order_release);
  }
}

}  // namespace sinter::test

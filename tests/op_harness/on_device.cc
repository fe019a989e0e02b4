#include "tests/op_harness/on_device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/op_harness/device_fence.h"

namespace sinter::test {
namespace {

constexpr size_t kAlignment = 256;

void expect_ok(const Status& status) {
  EXPECT_TRUE(status.ok()) << (status.message != nullptr ? status.message : "");
}

}  // namespace

OnDevice::OnDevice(Backend& backend) : backend_(backend) {
  BumpArena host, device, staging;
  DeviceQueue* none = nullptr;
  expect_ok(backend.open_queue({host, device, staging}, &none));
  own_.resize(host.used() + kAlignment);
  auto* at = reinterpret_cast<std::byte*>(align_up(reinterpret_cast<size_t>(own_.data()), kAlignment));
  BumpArena own({at, host.used()}), own_device({block(device.used()), device.used()});
  BumpArena& own_staging = this->staging(staging.used());
  expect_ok(backend.open_queue({own, own_device, own_staging}, &queue_));
}

OnDevice::~OnDevice() {
  if (queue_ != nullptr) backend_.close_queue(queue_);
  for (std::byte* b : staging_blocks_) backend_.memory()->free_staging(b);
  for (std::byte* b : blocks_) backend_.memory()->free(b);
}

std::byte* OnDevice::block(size_t bytes) {
  std::byte* at = nullptr;
  expect_ok(backend_.memory()->allocate(bytes, kBufferAlignment, &at));
  if (at != nullptr) blocks_.push_back(at);
  return at;
}

BumpArena& OnDevice::staging(size_t bytes) {
  std::byte* at = nullptr;
  expect_ok(backend_.memory()->allocate_staging(bytes, &at));
  if (at != nullptr) staging_blocks_.push_back(at);
  return staging_ = BumpArena({at, bytes});
}

// The copy has an address of the same alignment.
TensorView OnDevice::bring(const Operand& operand) {
  TensorView view = operand.view();
  const std::span<std::byte> window = operand.window();
  std::byte* there = block(window.size() + kAlignment);
  const auto here = reinterpret_cast<size_t>(window.data()), begin = reinterpret_cast<size_t>(there);
  there += (here - begin) % kAlignment;
  expect_ok(queue_->upload(there, window.data(), window.size()));
  expect_ok(queue_->finish());
  brought_.push_back({window, there});
  if (const DeviceFence* fence = DeviceFence::of(backend_.name())) {
    fence->set(there, window.size(), true);
    operand.each([&](const std::byte* at, size_t bytes, size_t) {
      fence->set(there + (at - window.data()), bytes, false);
    });
  }
  view.data = there + (view.data - window.data());
  view.memory = 1;
  return view;
}

void OnDevice::take_back() {
  for (const Brought& b : brought_) expect_ok(queue_->download(b.window.data(), b.there, b.window.size()));
  expect_ok(queue_->finish());
}

// A list that static objects of other files fill.
namespace {
std::vector<const DeviceFence*>& all_fences() {
  static std::vector<const DeviceFence*> fences;
  return fences;
}
}  // namespace

DeviceFence::DeviceFence(const char* backend, Set set) : backend_(backend), set_(set) {
  all_fences().push_back(this);
}

const DeviceFence* DeviceFence::of(std::string_view backend) {
  for (const DeviceFence* fence : all_fences())
    if (backend == fence->backend_) return fence;
  return nullptr;
}

}  // namespace sinter::test

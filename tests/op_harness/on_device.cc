#include "tests/op_harness/on_device.h"

#include <gtest/gtest.h>

#include <cstring>

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

// At an address of the same alignment.
TensorView OnDevice::bring(const Operand& operand) {
  TensorView view = operand.view();
  const std::span<std::byte> window = operand.window();
  std::byte* there = block(window.size() + kAlignment);
  const auto here = reinterpret_cast<size_t>(window.data()), begin = reinterpret_cast<size_t>(there);
  there += (here - begin) % kAlignment;
  expect_ok(queue_->upload(there, window.data(), window.size()));
  expect_ok(queue_->finish());
  brought_.push_back({window, there});
  view.data = there + (view.data - window.data());
  view.memory = 1;
  return view;
}

void OnDevice::take_back() {
  for (const Brought& b : brought_) expect_ok(queue_->download(b.window.data(), b.there, b.window.size()));
  expect_ok(queue_->finish());
}

}  // namespace sinter::test

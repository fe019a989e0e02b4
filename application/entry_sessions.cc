#include "application/entry_sessions.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace sinter {
namespace {

constexpr Status kTooLarge =
    error(Code::kOutOfMemory, "the sessions of the shape sets do not fit this machine's address space");

bool add(size_t bytes, size_t* sum) {
  if (*sum > SIZE_MAX - bytes) return false;
  *sum += bytes;
  return true;
}

// Adds up device memory: each session has blocks of its own.
Status add_devices(const Requirements& one, Requirements* all) {
  for (const DeviceRequirements& device : one.on_devices()) {
    uint32_t d = 0;
    while (d < all->device_count && std::strcmp(all->devices[d].backend, device.backend) != 0) ++d;
    if (d == all->device_count) {
      SINTER_RETURN_UNLESS(d < kMaxDevices,
                           unsupported("the shape sets use more than %a device memories", kMaxDevices));
      all->devices[all->device_count++].backend = device.backend;
    }
    DeviceRequirements& sum = all->devices[d];
    SINTER_RETURN_UNLESS(add(device.bytes, &sum.bytes), kTooLarge);
    sum.arena += device.arena, sum.state += device.state, sum.prepared += device.prepared;
    sum.staging += device.staging;
  }
  return ok_status();
}

// Returns the shape sets that the options name.
uint32_t entries_of(const Model& model, const SessionOptions& options) {
  return options.entry == kEveryEntry ? model.entry_count() : 1;
}
SessionOptions of_entry(const SessionOptions& options, uint32_t entry) {
  SessionOptions one = options;
  one.entry = entry;
  return one;
}
size_t object_bytes(uint32_t count) { return align_up(count * sizeof(Session), kBufferAlignment); }

}  // namespace

Result<Requirements> EntrySessions::requirements(const Model& model, const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const uint32_t entries = entries_of(model, options);
  if (entries == 1)
    return Session::requirements(model, of_entry(options, options.entry == kEveryEntry ? 0 : options.entry));
  SINTER_RETURN_UNLESS(
      options.bindings.empty(),
      invalid("buffers are bound to one shape set, but the file has %a; give its number as `entry`",
              entries));
  SINTER_RETURN_UNLESS(
      options.devices.empty(),
      invalid("blocks of device memory are given to one shape set, but the file has %a; give "
              "its number as `entry`",
              entries));
  SharedArena arena({});
  SharedState state({});
  Requirements all;
  all.control = all.bytes = object_bytes(entries);
  for (uint32_t e = 0; e < entries; ++e) {
    SessionOptions one = of_entry(options, e);
    if (one.arena == nullptr) one.arena = &arena;
    one.state = &state;
    const Result<Requirements> needs = Session::requirements(model, one);
    SINTER_RETURN_IF_ERROR(needs.status());
    all.state = std::max(all.state, needs->state);
    all.shareable = std::max(all.shareable, needs->shareable);
    SINTER_RETURN_UNLESS(add(needs->bytes, &all.bytes), kTooLarge);
    all.control += needs->control, all.prepared += needs->prepared, all.packed += needs->packed;
    SINTER_RETURN_IF_ERROR(add_devices(*needs, &all));
  }
  all.arena = all.state + all.shareable;
  SINTER_RETURN_UNLESS(
      add(all.state, &all.bytes) && (options.arena != nullptr || add(all.shareable, &all.bytes)), kTooLarge);
  return all;
}

Status EntrySessions::create(const Model& model, const Requirements& needs, std::span<std::byte> memory,
                             const SessionOptions& options) {
  block_ = memory;
  first_ = entry_ = options.entry == kEveryEntry ? 0 : options.entry;
  if (entries_of(model, options) > 1) {
    const Status status = create_all(model, needs, options);
    if (!status.ok()) destroy();
    return status;
  }
  Result<Session> created = Session::create(model, memory, of_entry(options, first_));
  SINTER_RETURN_IF_ERROR(created.status());
  alone_ = std::move(*created);
  sessions_ = &alone_;
  count_ = 1;
  return ok_status();
}

Status EntrySessions::create_all(const Model& model, const Requirements& needs, SessionOptions options) {
  SINTER_RETURN_UNLESS(block_.size() >= needs.bytes,
                       error(Code::kOutOfMemory, "the sessions need %a bytes of memory but got %b",
                             static_cast<int64_t>(needs.bytes), static_cast<int64_t>(block_.size())));
  const uint32_t entries = model.entry_count();
  std::span<std::byte> rest = block_.subspan(object_bytes(entries));
  const auto take = [&](size_t bytes) {
    const std::span<std::byte> part = rest.first(bytes);
    rest = rest.subspan(bytes);
    return part;
  };
  options.state = &state_.emplace(take(needs.state));
  if (options.arena == nullptr) options.arena = &arena_.emplace(take(needs.shareable));
  sessions_ = reinterpret_cast<Session*>(block_.data());
  while (count_ < entries) {
    options.entry = count_;
    const Result<Requirements> own = Session::requirements(model, options);
    SINTER_RETURN_IF_ERROR(own.status());
    SINTER_RETURN_UNLESS(own->bytes <= rest.size(),
                         error(Code::kInternal, "measuring and creating sessions disagree"));
    Result<Session> created = Session::create(model, take(own->bytes), options);
    SINTER_RETURN_IF_ERROR(created.status());
    new (sessions_ + count_++) Session(std::move(*created));
  }
  return ok_status();
}

Status EntrySessions::move_from(EntrySessions& old, const Model& model, const Requirements& needs,
                                std::span<std::byte> memory, const SessionOptions& options) {
  const bool alone = old.count_ == 1 && entries_of(model, options) == 1;
  if (alone) {
    const SessionOptions one = of_entry(options, options.entry == kEveryEntry ? 0 : options.entry);
    SINTER_RETURN_IF_ERROR(old.alone_.move_to(memory, one));
    block_ = memory;
    alone_ = std::move(old.alone_);
    sessions_ = &alone_;
    first_ = entry_ = old.first_;
    count_ = 1;
    old.count_ = 0;
    return ok_status();
  }
  SINTER_RETURN_IF_ERROR(create(model, needs, memory, options));
  if (old.count_ != count_ || old.current().profile() != current().profile()) {
    destroy();
    return invalid("a session keeps its profile and its entry when it is moved; give those that it has");
  }
  // One profile has one arrangement of its states, so they are at the same places in both.
  const std::span<std::byte> from = old.state_->memory(), to = state_->memory();
  if (!from.empty()) std::memcpy(to.data(), from.data(), std::min(from.size(), to.size()));
  entry_ = old.entry_;
  old.destroy();
  return ok_status();
}

void EntrySessions::destroy() {
  for (; count_ > 0; --count_) {
    Session& session = sessions_[count_ - 1];
    session.destroy();
    if (&session != &alone_) session.~Session();
  }
  sessions_ = nullptr;
  state_.reset();
  arena_.reset();
}

}  // namespace sinter

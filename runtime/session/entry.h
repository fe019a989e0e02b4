// An Entry holds what a session, or packed weights, are created from: an entry of the model in one of its
// profiles, the backends at hand, the devices whose memory the plan uses, and the caller's buffers.
//
// resolve() finds all of these, which is the first phase of creation. The later phases read them:
//
//   choose.h   Chooser         asks backends for each step, and chooses one
//   devices.h  Devices         blocks and queues of devices
//   prepare.h  PreparedValues  constants that are widened
//   packings.h Packings        which constants are packed where
//
// and three walks use these: SessionCreator (session_creator.h), PackingCreator (packed_weights.cc), and the
// survey of constants that a file can lack (packed_only.cc).
#pragma once

#include <cstring>

#include "runtime/session/frame.h"
#include "runtime/session/packed.h"
#include "sinter/packed_weights.h"

namespace sinter::detail {

struct Entry {
  enum class For : uint8_t { kSession, kPackings };

  Entry(const Model& of, const SessionOptions& with, For what = For::kSession)
      : model(of), options(with), packs_only(what == For::kPackings) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  Status resolve();

  // A device whose memory the plan uses.
  struct Device {
    uint8_t kind = 0;  // of memory, in the profile
    uint8_t slot = 0;  // in `backends`
    size_t arena = 0;  // bytes of its regions
    size_t state = 0;  // of these: of regions that hold state
  };

  // Returns how many entries are packed for: all of the profile, or the one.
  uint32_t packed_entries() const { return packs_every() ? length(profile->entries()) : 1; }
  // Returns the frame of entry `e` of these.
  Frame frame(uint32_t e) const;
  // Returns the number of an operand in the keys of packings.
  int64_t number_of(const Frame& of, int32_t v) const {
    return number != nullptr ? number(of, v) : of.constant_of(v);
  }
  // Makes the key of a step's packing (packed_key.cc). False: it reads more operands than a key has room for,
  // and is not shared.
  bool key_of(const Frame& of, const fb::Step& step, size_t backend, const Packing& packing,
              PackedKey* key) const;
  size_t reference() const { return backend_count - 1; }  // in `backends`
  const char* backend_name(uint8_t kind) const { return profile->backends()->Get(kind - 1u)->c_str(); }
  // Returns whether a candidate of the plan stands for the model's own kernels, which are the last backend.
  bool is_reference(uint8_t candidate) const {
    return std::strcmp(profile->backends()->Get(candidate)->c_str(), "reference") == 0;
  }

  // Return the memory and the address of a placed value of the root (bindings.cc).
  uint8_t memory_of(const fb::Placement& placement) const;
  std::byte* bound_address(const fb::Placement& placement) const;  // null: it is not bound
  // Refuses memory that overlaps the model's or a bound buffer's. `what`: the memory's name.
  Status check_memory(std::span<const std::byte> memory, const char* what) const;

  const Model& model;
  const SessionOptions& options;
  const bool packs_only;
  uint32_t profile_index = 0;
  const fb::Profile* profile = nullptr;
  Frame root;                           // the entry, or the first one
  Backend* backends[kMaxBackends + 1];  // the profile's in order (null: missing) or the one requested; then
  KernelBackend kernels{"reference", {}};  // the model's
  size_t backend_count = 0;
  bool requested = false;  // a backend by name: it is offered every step
  Device devices[kMaxDevices];
  uint32_t device_count = 0;
  PackedState::Number* number = nullptr;  // of PackedWeights and of the file; null: Frame::constant_of()

 private:
  bool packs_every() const { return packs_only && options.entry == kEveryEntry; }
  Status resolve_profile();
  Status resolve_backends();
  // Devices (devices.cc).
  Status resolve_devices();
  Status add_devices(const Frame& of);
  bool uses_device(uint8_t kind) const;
  Status missing(const Frame& of, uint8_t kind, const char* why) const;
  // Bindings.
  Status resolve_bindings();
  Status resolve_binding(const Binding& binding);
  Status resolve_device_binding(const Binding& binding, uint32_t value, uint8_t* kind) const;
  Status check_bound_blocks() const;
  bool host_uses(uint32_t value, uint8_t kind) const;
  size_t bound_bytes(size_t k) const;
  int binding_of(uint32_t value) const;  // -1: it is not bound

  uint32_t bound_[kMaxBindings];             // the value of each of options.bindings
  uint8_t bound_memory_[kMaxBindings] = {};  // its kind; 0: the host's
  size_t bound_count_ = 0;
};

}  // namespace sinter::detail

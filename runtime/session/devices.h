// The blocks and queues of the devices whose memory an entry uses.
//
// A session has one block of each such memory: the regions that the plan has there, what the backend takes
// for itself, then what its steps take when they are prepared. Packed weights have one without regions, and a
// queue for as long as weights are packed.
#pragma once

#include "runtime/session/choose.h"
#include "runtime/session/creation_memory.h"

namespace sinter::detail {

class Devices {
 public:
  Devices(const Entry& entry, Chooser& chooser) : entry_(entry), chooser_(chooser) {}

  // The parts of a device's block and of its staging memory that steps take.
  struct Block {
    BumpArena prepared, staging;
    DeviceQueue* queue = nullptr;  // null: not open
  };
  Block& of(uint8_t kind) { return units_[at(kind)]; }
  // Returns the queue of the device in whose memory the view is; null: it is in host memory, or no queue is
  // open.
  DeviceQueue* queue_of(const TensorView& view) const {
    return view.memory != 0 ? units_[at(view.memory)].queue : nullptr;
  }

  // Opens the backends, and measures what their queues take for themselves.
  Status measure();
  // Returns the bytes of host memory that the queue of device `d` takes.
  size_t own_host(uint32_t d) const { return units_[d].own_host; }
  // States the blocks, when steps have been measured.
  Status require(Requirements* needs) const;

  // Building a session: takes a block for each device, the caller's or a new one, and places regions there.
  Status take_blocks(const Requirements& needs, SessionState& session, Frame& root);
  // Opens the queues there; `prepared`: host memory, in which they come next.
  Status open_queues(BumpArena& prepared, SessionState& session);

  // Building packed weights: opens queues in the blocks that the caller gave, and closes them.
  Status open_packing_queues(const Requirements& needs, StructureArena& control);
  void close_packing_queues();

 private:
  struct Unit : Block {
    size_t own = 0, own_host = 0, own_staging = 0;  // bytes that the queue takes for itself
    std::byte* packing_staging = nullptr;           // while weights are packed
  };

  uint32_t at(uint8_t kind) const {
    uint32_t d = 0;
    while (entry_.devices[d].kind != kind) ++d;
    return d;
  }
  Backend& backend(uint32_t d) const { return *entry_.backends[entry_.devices[d].slot]; }
  Status brought_block(uint32_t d, const DeviceRequirements& need, std::span<std::byte>* block) const;

  const Entry& entry_;
  Chooser& chooser_;
  Unit units_[kMaxDevices];
};

}  // namespace sinter::detail

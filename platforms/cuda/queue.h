// A session's queue on the device: one stream, and the steps that were prepared for it, in groups that a run
// starts as one captured graph each.
//  Transfers go through staging memory, so that a graph's addresses never change: a run copies a group's
//  uploads into it, starts the graph with the group's last step, and finish() copies the downloads out of it.
#pragma once

#include "platforms/cuda/driver/device.h"
#include "runtime/backend/backend.h"

namespace sinter::cuda {

class Queue;

struct Step {
  enum class Kind : uint8_t { kKernels, kUpload, kDownload };
  Kind kind = Kind::kKernels;
  bool last = false;  // true for the last of its group
  bool can_fail = false;
  bool pending = false;  // a download whose result is still to be copied out of staging memory
  Queue* queue = nullptr;
  Step* group = nullptr;            // the first step of its group
  Step* next = nullptr;             // the next of the same group
  GraphExecHandle graph = nullptr;  // for a group's first step
  const Action* actions = nullptr;
  // For an element-wise step: the launch of this and the steps behind it, if they are a chain.
  Action* chain = nullptr;
  bool heads_chain = false;  // `chain` is used
  bool in_chain = false;     // computed by the launch of a step before it
  std::byte *host = nullptr, *staging = nullptr, *device = nullptr;  // transfers
  size_t bytes = 0;
  Step* next_pending = nullptr;
  // The place of the step in the plan, for faults, and the next step that can fail.
  uint32_t program = 0, number = 0;
  Step* next_failing = nullptr;
};

class Queue final : public DeviceQueue {
 public:
  // Measures or takes the memory of a queue; `*queue` is null while measuring.
  static Status open(Device& device, const QueueMemory& memory, Queue** queue);
  void close();

  Device& device() { return device_; }
  // Returns the place to which the next step that can fail reports: steps are counted in the order of a run.
  FaultPlace fault_place() const { return {key_, failing_}; }
  // Adds the next step of the current group.
  Status add(Step* step);
  // Destroys the graph that begins with this step, if one does.
  void drop(Step* step);
  // Does the step's part of a run.
  Status run(Step& step);

  Status upload(std::byte* to_device, const std::byte* from_host, size_t bytes) override;
  Status download(std::byte* to_host, const std::byte* from_device, size_t bytes) override;
  Status copy(std::byte* to, const std::byte* from, size_t bytes) override;
  Status zero(std::byte* at, size_t bytes) override;
  Status finish() override;
  Status end_group() override;
  Status begin_after(void* stream) override;
  Status end_before(void* stream) override;
  void set_stepwise(bool on) override { stepwise_ = on; }

 private:
  Queue(Device& device, FaultKey* key, FaultKey* key_staging)
      : device_(device), key_(key), key_staging_(key_staging) {}

  Status start(const Step& step, bool alone);
  Status start_action(const Action& action);
  Status capture(Step& first);
  Status clear_key();
  Status take_key();

  Device& device_;
  FaultKey* key_ = nullptr;          // on the device
  FaultKey* key_staging_ = nullptr;  // its copy in staging memory
  StreamHandle stream_ = nullptr;
  EventHandle event_ = nullptr;  // orders this stream and a caller's
  Status order(StreamHandle first, StreamHandle second);
  Step *first_ = nullptr, *last_ = nullptr;  // those of the group that is being prepared
  Step *first_pending_ = nullptr, *last_pending_ = nullptr;
  Step *first_failing_ = nullptr, *last_failing_ = nullptr;
  uint32_t failing_ = 0;        // steps that can fail
  bool downloads_ = false;      // a step of this group downloads
  bool behind_kernel_ = false;  // the last job in the stream is a kernel's launch, in this group or step
  bool stepwise_ = false;
  bool busy_ = false;  // a job was started since the last finish()
};

}  // namespace sinter::cuda

// The lowering of a call to launches of kernels by one function for each operation (operators.def), which the
// planning side calls to measure and the device side to build, so that steps run as planned.
//
//   Status lower_softmax(Lowering& l) {
//     const TensorView& x = l.in(0);
//     SINTER_RETURN_UNLESS(is_float(x.dtype), unsupported("..."));        // before anything is claimed
//     SoftmaxArguments a;
//     a.x = x.data, a.y = l.out(0).data, a.room = l.workspace(rows * 4);
//     return l.launch<Kernel::k_softmax>({.blocks = {rows}}, a);
//   }
//
// The function is called several times for a call and does the same each time. It depends on nothing but the
// call's dtypes, dims, strides and attributes and on which of its inputs are constants; never on addresses,
// on the data of operands, or, for the memory that it claims, on the device. Alignment: constants, packed
// forms and workspaces begin at multiples of kBufferAlignment. Other operands can begin at any multiple of
// their element size, dense ones as well: a slice or a part of a joined value is dense. Kernels that read
// more than an element at a time check the address.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/grid/fault.h"
#include "platforms/cuda/kernels/kernel_arguments.h"
#include "runtime/backend/kernel.h"
#include "runtime/core/bump_arena.h"

namespace sinter::cuda {

// Returns whether the type is a float of at least 16 bits, or an integer.
constexpr bool is_number(DType t) { return t >= DType::kFloat32 && t <= DType::kUint64; }

// The device that a step is built for.
struct DeviceFacts {
  int capability = 75;  // compute capability: 75 to 120
  int multiprocessors = 16;
};

// The blocks of a grid along each axis: 1 along those that are not stated.
struct Blocks {
  uint32_t x = 1, y = 1, z = 1;
  constexpr uint32_t& operator[](int axis) { return axis == 0 ? x : axis == 1 ? y : z; }
  constexpr uint32_t operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};
struct LaunchShape {
  Blocks blocks;
  uint32_t shared_bytes = 0;  // at most kMostShared
};
inline constexpr uint32_t kMostShared = 64 << 10;  // that of the smallest device, 7.5

// An action of a step; a step does its actions in order.
struct Action {
  enum class Kind : uint8_t { kLaunch, kFill };
  Kind kind = Kind::kLaunch;
  Kernel kernel{};
  LaunchShape shape;
  const void* arguments = nullptr;  // kLaunch
  uint32_t argument_bytes = 0;
  std::byte* to = nullptr;  // kFill: `bytes` bytes get the value of `fill`
  size_t bytes = 0;
  uint8_t fill = 0;
};

// Fills the packed form of a call's constants, in host memory. Operands have the host's addresses.
using Pack = void (*)(const OpCall& call, std::span<std::byte> to);

// The bytes that creation brings to the device.
struct Upload {
  std::byte* to = nullptr;
  size_t bytes = 0;
  int input = -1;       // a dense copy of this input is brought, or
  Pack pack = nullptr;  // the result of this function for the call
};

class Lowering {
 public:
  static constexpr int kMostUploads = 16;  // the most constants and tables of a call

  // A lowering that measures.
  explicit Lowering(const OpCall& call) : call_(call) {}
  // A lowering that measures, but gives the addresses of constants in `device_prepared`.
  Lowering(const OpCall& call, BumpArena& device_prepared)
      : call_(call), device_prepared_(&device_prepared) {}
  // A lowering that builds: actions and their arguments are in `prepared`, constants in `device_prepared`.
  Lowering(const OpCall& call, const DeviceFacts& facts, const FaultPlace& fault,
           std::span<std::byte> workspace, BumpArena& prepared, BumpArena& device_prepared)
      : call_(call),
        facts_(facts),
        fault_(fault),
        workspace_(workspace),
        prepared_(&prepared),
        device_prepared_(&device_prepared) {}

  // Returns the call as it was made, whose operands may be host constants. Addresses are for in() and out().
  const OpCall& call() const { return call_; }
  template <class A>
  const A& attrs() const {
    return call_.attrs<A>();
  }
  bool has_input(size_t i) const { return call_.has_input(i); }
  bool has_output(size_t i) const { return call_.has_output(i); }
  bool is_constant(size_t i) const { return i < 32 && call_.has_input(i) && call_.in(i).constant; }
  // Refuses operands and results that are strided. Constants are brought to the device dense.
  Status check_dense() const;
  const DeviceFacts& facts() const { return facts_; }

  // Returns an operand in device memory. A constant is brought there, dense, if this is called for it.
  const TensorView& in(size_t i);
  const TensorView& out(size_t i) const { return call_.out(i); }
  // Returns a packed form of constants, or a table made of the attributes; at most kMostUploads a call.
  std::byte* packed(size_t bytes, Pack pack);
  // Returns scratch memory of a run.
  std::byte* workspace(size_t bytes);
  // Returns the place to which kernels that can fail report.
  FaultPlace fault() { return can_fail_ = true, fault_; }

  template <Kernel kernel>
  Status launch(const LaunchShape& shape, const typename ArgumentsOf<kernel>::Type& arguments) {
    return launch(kernel, shape, &arguments, sizeof(arguments));
  }
  // Does the same for kernels that differ only in the types of their elements and have one type of arguments.
  template <class A>
  Status launch_one_of(Kernel kernel, const LaunchShape& shape, const A& arguments) {
    return launch(kernel, shape, &arguments, sizeof(arguments));
  }
  Status fill(std::byte* to, size_t bytes, uint8_t value);

  // Return the results.
  size_t workspace_bytes() const { return align_up(workspace_used_, kBufferAlignment); }
  size_t prepared_bytes() const { return prepared_here_.used(); }
  size_t device_prepared_bytes() const { return device_here_.used(); }
  size_t scratch_bytes() const { return scratch_; }
  bool can_fail() const { return can_fail_; }
  // Returns whether the step is one launch of such a kernel, with this many bytes of arguments.
  bool is_launch_of(bool (*kind)(Kernel), size_t* argument_bytes) const {
    *argument_bytes = last_argument_bytes_;
    return actions_ == 1 && last_is_launch_ && kind(last_kernel_);
  }
  bool exhausted() const { return exhausted_; }
  const Action* first_action() const { return first_; }
  int action_count() const { return actions_; }
  // Returns the kernel of the last launch, also while measuring.
  Kernel last_kernel() const { return last_kernel_; }
  std::span<const Upload> uploads() const { return {uploads_, static_cast<size_t>(upload_count_)}; }
  // Returns the action after this one, in the order in which they were added.
  static const Action* next(const Action* action);

 private:
  struct Linked;

  Status launch(Kernel kernel, const LaunchShape& shape, const void* arguments, size_t bytes);
  Linked* add_action(size_t argument_bytes);
  std::byte* bring(size_t bytes, int input, Pack pack, size_t scratch);

  const OpCall& call_;
  DeviceFacts facts_;
  FaultPlace fault_;
  std::span<std::byte> workspace_;
  BumpArena* prepared_ = nullptr;  // null: measures
  BumpArena* device_prepared_ = nullptr;
  BumpArena prepared_here_, device_here_;
  TensorView brought_[kMostUploads];  // the constants on the device
  uint8_t brought_at_[32] = {};       // by input: 1 + the place in brought_, 0: not brought
  int brought_count_ = 0;
  size_t workspace_used_ = 0, scratch_ = 0;
  bool can_fail_ = false, exhausted_ = false;
  Linked *first_linked_ = nullptr, *last_linked_ = nullptr;
  const Action* first_ = nullptr;
  int actions_ = 0;
  bool last_is_launch_ = false;
  Kernel last_kernel_{};
  size_t last_argument_bytes_ = 0;
  Upload uploads_[kMostUploads];
  int upload_count_ = 0;
};

// ---- helpers of the functions that lower

// Makes the box of some dims. Fails with kUnsupported from 2^31 elements on.
Status box_of(std::span<const int64_t> dims, Box* box);
// Returns the steps of a view within a box that has its dims, or to which it is broadcast.
Steps steps_of(const TensorView& view, const Box& box);
// Merges axes that every one of the steps passes as one, and drops axes of one element.
void merge_axes(Box* box, std::span<Steps* const> steps);
// Makes elements of `width` bytes wider, of at most 16 bytes, if every operand's last axis is dense and
// everything else is a multiple; returns their width. Operands must begin at multiples of that.
int widen_elements(Box* box, std::span<Steps* const> steps, int width);
// Returns whether every step of a view is a multiple of its elements' width, as loads on the device require.
bool steps_are_whole(const TensorView& view);
// Returns the place `bytes` behind an address, which is null while measuring.
inline std::byte* behind(std::byte* address, int64_t bytes) {
  return address == nullptr ? nullptr : address + bytes;
}
// Returns enough blocks for `threads` threads, of `per_block` each.
inline uint32_t blocks_for(int64_t threads, int per_block) {
  constexpr int64_t kMost = 1 << 20;  // kernels loop over the rest
  const int64_t blocks = (threads + per_block - 1) / per_block;
  return static_cast<uint32_t>(blocks < 1 ? 1 : blocks > kMost ? kMost : blocks);
}
// Returns blocks of `each` that cover `count`, both below 2^31, for kernels that end with their grid.
inline uint32_t blocks_of(int64_t count, int64_t each) {
  return static_cast<uint32_t>((count + each - 1) / each);
}

}  // namespace sinter::cuda

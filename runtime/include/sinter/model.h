// Model: an opened and verified .sinter file. It is immutable, and any number of sessions may share it.
//
//   auto bytes = sinter::Model::open_bytes(file);                  // memory that opening needs
//   auto model = sinter::Model::open(file, memory, {.kernels = sinter::reference_kernels()});
//
// The file's bytes must stay at their address, unchanged, as long as the model and its sessions live:
// constants are used in place. They must be aligned to kBufferAlignment (a mapped file is).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/backend/kernel.h"
#include "runtime/core/axis_range.h"
#include "runtime/core/custom_ops.h"

namespace sinter {

namespace detail {
struct ModelState;
}

struct OpenOptions {
  // The kernels that verify the steps' types and shapes and compute the steps that no backend accepts:
  // reference_kernels(), or a table with only the kernels that the application's models need.
  KernelTable kernels;
  // False: the storage is trusted, but the structure is verified. This has no effect with a public_key, nor
  // in a sealed build (SINTER_SEALED), which checks digests and does not verify the structure.
  bool check_digests = true;
  // True: the file is in memory that cannot change (flash, ROM), and its FlatBuffer is read in place instead
  // of copied.
  bool stable = false;
  // 32 bytes of an Ed25519 public key: a file that is not signed with this key is refused before anything but
  // its header is read. Without a key every valid file opens, whether signed or not. Builds without
  // SINTER_SIGNATURES refuse (kUnsupported) every file if a key is given, and signed files unless
  // check_digests is false.
  std::span<const uint8_t> public_key = {};
  // The application's own operators (docs/application.md), for models that have such steps. The list and
  // the operators live as long as the model. Their rules are run again, and must give the file's types
  // and dims. A file also opens without the operators that it needs, but has no sessions then.
  CustomOps custom_ops = {};
};

// A public input or output, with its name in the model. The dim of a bounded axis is its maximum.
struct PortInfo {
  const char* name = "";
  DType dtype = DType::kNone;
  std::span<const int64_t> dims;
  // An integer q stands for (q - zero_point) * scale, or for itself if scale is 0.
  float scale = 0;
  int32_t zero_point = 0;
};

// The shape that an input is given in.
struct InputShape {
  const char* name = "";
  std::span<const int64_t> dims;
};

// A value that a session keeps from run to run.
struct StateInfo {
  const char* input = "";   // the original model's input that the value is when a run begins
  const char* output = "";  // the original model's output that becomes the value when a run ends
  DType dtype = DType::kNone;
  std::span<const int64_t> dims;
  bool starts_at_zero = false;  // else with numbers that the file holds
};

class Model {
 public:
  Model() = default;  // empty: only valid() may be called

  // Returns the bytes of memory that open() needs for this file. Only the header is read.
  static Result<size_t> open_bytes(std::span<const std::byte> file, const OpenOptions& options = {});
  // Verifies the file completely. `memory` is aligned to kBufferAlignment; its first retained_bytes() bytes
  // belong to the model as long as it or a session of it lives, the rest is free after open(). Copies of a
  // Model are handles to the same state.
  static Result<Model> open(std::span<const std::byte> file, std::span<std::byte> memory,
                            const OpenOptions& options);

  bool valid() const { return state_ != nullptr; }
  size_t retained_bytes() const;  // a multiple of kBufferAlignment

  // Shape sets: entry 0 is the default. Inputs and outputs are the same in every profile.
  uint32_t entry_count() const;
  // Returns the first entry whose inputs of these names take these dims, whatever its other inputs have, or
  // -1.
  int find_entry(std::span<const InputShape> shapes) const;
  // Returns whether the entry's input of this name takes these dims.
  bool takes(const InputShape& shape, uint32_t entry) const;
  uint32_t input_count(uint32_t entry = 0) const;
  uint32_t output_count(uint32_t entry = 0) const;
  PortInfo input(uint32_t i, uint32_t entry = 0) const;
  PortInfo output(uint32_t i, uint32_t entry = 0) const;
  // Returns the entries that an axis of an input may have: more than one number if the model was converted
  // with --dim NAME=MIN..MAX for it (docs/shapes.md).
  AxisRange input_range(uint32_t i, int axis, uint32_t entry = 0) const;
  // Returns the index of the input or output of that name, or -1.
  int find_input(const char* name, uint32_t entry = 0) const;
  int find_output(const char* name, uint32_t entry = 0) const;
  // The values that sessions keep between runs. They are neither inputs nor outputs, and the same in every
  // profile.
  uint32_t state_count(uint32_t entry = 0) const;
  StateInfo state(uint32_t i, uint32_t entry = 0) const;

  // Plans of the model for different targets, such as "x86_64+avx2".
  uint32_t profile_count() const;
  const char* profile_name(uint32_t profile) const;
  const char* profile_target(uint32_t profile) const;
  int find_profile(const char* name) const;  // or -1
  // Returns the profile that sessions run by default: the first that is planned for this machine's
  // architecture or for any architecture, else the first.
  uint32_t default_profile() const;
  const char* producer() const;

  // Facts about the model for applications and people, by their keys in ascending order. Texts are
  // UTF-8 and the file's own.
  uint32_t metadata_count() const;
  const char* metadata_key(uint32_t i) const;
  const char* metadata_value(uint32_t i) const;
  // Returns the value of a key, or null.
  const char* metadata(const char* key) const;
  // Returns the number of class names that the file has for this output, one for each of its classes;
  // 0 if it has none.
  uint32_t label_count(const char* output) const;
  // Returns the name of a class by its index, or null.
  const char* label(const char* output, uint32_t i) const;

  // Each entry of a profile is a program, and so is each body of its control flow. Messages, StepInfo and
  // Fallback number the programs of all profiles consecutively.
  uint32_t program_count() const;
  uint32_t entry_program(uint32_t entry, uint32_t profile) const;
  uint32_t entry_program() const { return entry_program(0, default_profile()); }
  // Returns the op or the name of a step, for messages ("" if names are stripped). The op of a custom
  // operator's step is the operator's name. The program is entry_program() if none is given.
  uint32_t step_count(uint32_t program) const;
  uint32_t step_count() const { return step_count(entry_program()); }
  const char* step_op(uint32_t step, uint32_t program) const;
  const char* step_op(uint32_t step) const { return step_op(step, entry_program()); }
  const char* step_name(uint32_t step, uint32_t program) const;
  const char* step_name(uint32_t step) const { return step_name(step, entry_program()); }

  // Writes the sentence for a status of this model or of its sessions, with the model's names for the place:
  // "step 3 'conv1' (Conv), input 1: ...". Otherwise it is format_status(). An empty model has no names.
  size_t format(const Status& status, std::span<char> buffer) const;

  const detail::ModelState* state() const { return state_; }

 private:
  const detail::ModelState* state_ = nullptr;
};

}  // namespace sinter

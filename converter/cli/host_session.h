// A model file that commands open and run on this machine, with exceptions with names in place of statuses.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converter/import/read/arrays.h"
#include "converter/ir/custom_operators.h"
#include "converter/quantize/samples/port_numbers.h"
#include "converter/sign/keys.h"
#include "sinter/sinter.h"

namespace sinter::convert {

// Returns "step 3 'conv1' (Conv): ...", with the model's own names.
std::string describe(const Status& status, const Model* model = nullptr);

// Memory aligned to kBufferAlignment.
class AlignedMemory {
 public:
  AlignedMemory() = default;
  explicit AlignedMemory(size_t bytes);
  std::span<std::byte> span() const { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
};

// An opened file. Throws FileError, and ModelFileError where it is not sound or not signed with the key.
class LoadedModel {
 public:
  enum class Reading {
    kMapped,
    kCopied,    // read into memory
    kInPieces,  // mapped, but digests are checked in pieces whose pages are released at once
  };
  explicit LoadedModel(const std::filesystem::path& path, const std::optional<PublicKey>& key = {},
                       Reading reading = Reading::kMapped,
                       std::shared_ptr<const CustomOperators> custom_ops = {});
  const Model& model() const { return model_; }
  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> file() const { return file_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const CustomOperators> custom_ops_;
  std::shared_ptr<const void> mapping_;
  std::span<const std::byte> file_;
  AlignedMemory memory_;
  Model model_;
};

// Throws DataError where the file has constants in packed form alone, which `command` cannot use.
void require_constants(const LoadedModel& loaded, const char* command);

// Packed weights in memory of their own.
struct HostPackedWeights {
  AlignedMemory memory;
  PackedWeights packed;

  Status pack(const Model& model, const SessionOptions& options);
};

// Returns this program's backends, best first. Throws UsageError unless `name` is empty or one of them.
std::vector<Backend*> host_backends(const std::string& name);
// Returns the names of these backends, best first, with "reference".
std::vector<std::string> host_backend_names();

// Returns the help of --backend, with these names.
std::string backend_help();

// Returns the instruction set of the backends that choose one on this machine; "none" if no backend does.
std::string instruction_set();

// A fallback step (sinter::Fallback), with its names.
struct FallbackStep {
  uint32_t program = 0, step = 0;
  std::string op, name, expected, backend, reason;
};

class HostSession {
 public:
  struct Options {
    int threads = 1;
    std::string backend = {};          // empty: as planned
    std::string profile = {};          // empty: Model::default_profile()
    std::vector<int> processors = {};  // for the threads beside the caller's; empty: any
    uint32_t entry = 0;                // the shape set
  };
  HostSession(const LoadedModel& loaded, const Options& options);
  ~HostSession();
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  Session& session() { return session_; }
  uint32_t entry() const { return entry_; }
  uint32_t profile() const { return session_.profile(); }  // its number
  // Returns the number of the entry's program, as step_backend() takes it.
  uint32_t program() const { return loaded_.model().entry_program(entry_, session_.profile()); }
  const Requirements& requirements() const { return requirements_; }
  // The bytes of packed weights for sessions of all shape sets, and of each session besides; sharing() packs.
  struct Sharing {
    size_t packed_weights = 0, session = 0;
    uint32_t packings = 0, in_file = 0;  // in_file: of the packings, those that the model's file holds
  };
  Sharing sharing() const;
  // Returns the fallback steps in the order of creation.
  const std::vector<FallbackStep>& fallbacks() const { return fallbacks_; }
  // Returns the fallback of a step, or null if it is none.
  const FallbackStep* fallback(uint32_t program, uint32_t step) const;
  // Returns the backend that computes a step; "elided" if nothing has to be done, "session" for If and Loop.
  std::string step_backend(uint32_t program, uint32_t step) const;
  // Returns the number of steps that each backend computes in all programs, without "elided" and "session".
  std::map<std::string, size_t> backend_counts() const;
  // Copies the arrays, or sample `each` of stacked arrays if it is not negative, into the model's inputs.
  // Throws DataError with the input's name, its type and shape, and those that the model takes.
  void set_inputs(const Arrays& arrays, int64_t each = -1);
  // Returns the number of samples in the arrays for --each. Throws DataError where they disagree.
  int64_t sample_count(const Arrays& arrays) const;
  // Runs the model, and calls `after`, if any, behind each step of the main list. Throws DataError.
  using AfterStep = std::function<void(const StepInfo& info, const OpCall& call)>;
  void run(const AfterStep& after = {});
  // Returns copies of the outputs, cut to their used length.
  Arrays outputs() const;

 private:
  ConstantPtr given(const Arrays& arrays, uint32_t input) const;
  SessionOptions session_options() const;
  [[noreturn]] void fail(const Status& status) const;

  const LoadedModel& loaded_;
  AlignedMemory memory_;
  std::vector<Backend*> backends_;
  struct Threads;
  std::unique_ptr<Threads> threads_;
  Requirements requirements_;
  std::string asked_;    // Options::backend
  std::string profile_;  // Options::profile
  uint32_t entry_ = 0;   // Options::entry
  std::vector<FallbackStep> fallbacks_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> fallback_at_;  // program and step: index of fallbacks_
  Session session_;
};

// Whether sessions keep values from run to run.
inline bool has_state(const Model& model) { return model.state_count() > 0; }

inline IntegerScale integer_scale(const PortInfo& port) { return {port.scale, port.zero_point}; }
// Whether an input also takes float32 numbers, which are rounded to its integers.
inline bool takes_numbers(const PortInfo& port) { return port.dtype == DType::kInt8 && port.scale > 0; }

// Returns the type of made-up inputs: float32 where numbers are taken.
inline DType given_type(const PortInfo& port) { return takes_numbers(port) ? DType::kFloat32 : port.dtype; }

// Returns "float32[1,3,224,224]".
std::string port_type(const PortInfo& port);
// Returns the type of an input with the ranges of its bounded axes: "int64[1,1..128]".
std::string input_type(const Model& model, uint32_t input, uint32_t entry);
// Returns a sample's shape if `stack` is that of samples along a first axis, which is 1 or missing in them.
std::optional<Dims> stacked_shape(const Model& model, uint32_t input, uint32_t entry, const Dims& stack);

}  // namespace sinter::convert

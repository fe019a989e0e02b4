// The flags of commands that read samples: they state how pictures and sounds become inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "converter/data/preprocessing.h"
#include "converter/import/lower.h"
#include "converter/quantize/integers/public_integers.h"

namespace sinter::convert {

// The formats of DATA, for the help of the flags that take it.
inline constexpr const char* kDataFormats =
    ".npz, .npy, .png, .jpg, .wav, .bin, a folder or a quoted pattern of these, a list (.json, .jsonl, .csv)";

struct DataFlags {
  PreprocessingText text;
  bool skip_damaged = false;
  void add_to(CLI::App& command);
  // Throws UsageError.
  Preprocessing preprocessing() const {
    Preprocessing how = parse_preprocessing(text);
    how.skip_damaged = skip_damaged;
    return how;
  }
};

// Returns the types that texts of the form TYPE or PORT=TYPE state. Throws UsageError where a type is none of
// uint8, int8 and, for outputs, float32, and where a port has two.
std::vector<PortType> port_types(const std::string& flag, const std::vector<std::string>& texts);
// Enters --input-type uint8 into the options, and returns the entries of other types.
std::vector<PortType> set_byte_inputs(const std::vector<PortType>& types, Preprocessing* how,
                                      LoweringOptions* lowering);

}  // namespace sinter::convert

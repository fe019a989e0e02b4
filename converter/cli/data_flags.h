// The flags of every command that reads samples: how pictures and sounds become inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "converter/data/preprocessing.h"
#include "converter/import/lower.h"

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

// --input-type as given ("": not): sets what is built into the model. Throws UsageError.
void set_byte_inputs(const std::string& input_type, Preprocessing* how, LoweringOptions* lowering);

}  // namespace sinter::convert

#include "converter/cli/data_flags.h"

#include <fmt/format.h>

#include "converter/cli/flags.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert {

void DataFlags::add_to(CLI::App& command) {
  begin_group(command, flag_group::kPictures);
  add_value(
      command, "--mean", text.mean, "M[,M...]",
      "Of pictures and sounds, the number is (pixel - mean) * scale, with pixels from 0 to 255 and sounds "
      "from -1 to 1; one number, or one for each channel");
  add_value(command, "--scale", text.scale, "S[,S...]", "The same; fractions such as 1/255 may be given");
  add_value(
      command, "--resize", text.resize, "MODE",
      "exact: stretch pictures to the input's size; crop, crop=SIDE: the shorter side to SIDE, then the "
      "middle; letterbox, letterbox=PIXEL: fit in and fill the rest. Bilinear, antialiased. Sounds: crop "
      "takes the middle, letterbox adds silence");
  add_value(
      command, "--layout", text.layout, "nhwc|nchw",
      "Where channels of a picture's input are, if its shape does not decide that: nhwc (last), nchw (first)")
      ->check(one_of({"nhwc", "nchw"}));
  add_value(command, "--channel-order", text.channel_order, "rgb|bgr",
            "The first channel of pictures: rgb (default: red) or bgr")
      ->check(one_of({"rgb", "bgr"}));
  command.add_flag(
      "--skip-damaged", skip_damaged,
      "Leave out samples whose files cannot be decoded, with a warning that names them; without it the first "
      "one ends the command");
}

void set_byte_inputs(const std::string& input_type, Preprocessing* how, LoweringOptions* lowering) {
  if (input_type.empty()) return;
  const size_t equals = input_type.rfind('=');
  const bool named = equals != std::string::npos && equals > 0;
  if ((named ? input_type.substr(equals + 1) : input_type) != "uint8")
    throw UsageError(
        fmt::format("--input-type {}: inputs can be bytes only; give uint8 or INPUT=uint8", input_type));
  lowering->bytes = ByteInputs{named ? input_type.substr(0, equals) : std::string(), *how};
  how->built_in = true;
}

}  // namespace sinter::convert

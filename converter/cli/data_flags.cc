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

PortType port_type(const std::string& flag, const std::string& text) {
  if (text.empty()) return {};
  const size_t equals = text.rfind('=');
  const bool named = equals != std::string::npos && equals > 0, output = flag == "--output-type";
  const std::string type = named ? text.substr(equals + 1) : text;
  PortType found{named ? text.substr(0, equals) : std::string(), DType::kNone};
  if (type == "uint8") found.type = DType::kUint8;
  if (type == "int8") found.type = DType::kInt8;
  if (type == "float32" && output) found.type = DType::kFloat32;
  if (found.type == DType::kNone)
    throw UsageError(
        output
            ? fmt::format("{} {}: outputs can be int8, uint8 or float32; give one of these, or OUTPUT=TYPE",
                          flag, text)
            : fmt::format("{} {}: inputs can be uint8 or int8; give one of these, or INPUT=TYPE", flag,
                          text));
  return found;
}

void set_byte_inputs(const PortType& input, Preprocessing* how, LoweringOptions* lowering) {
  if (input.type == DType::kNone) return;
  lowering->bytes = ByteInputs{input.port, *how};
  how->built_in = true;
}

}  // namespace sinter::convert

#include "converter/cli/data_flags.h"

#include <fmt/format.h>

#include <algorithm>

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

std::vector<PortType> port_types(const std::string& flag, const std::vector<std::string>& texts) {
  std::vector<PortType> types;
  const bool output = flag == "--output-type";
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const bool named = equals != std::string::npos && equals > 0;
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
    const auto other =
        std::find_if(types.begin(), types.end(), [&](const PortType& t) { return t.port == found.port; });
    if (other != types.end() && other->type == found.type) continue;
    if (other != types.end())
      throw UsageError(fmt::format("{} {}: another type is given for {}; give one", flag, text,
                                   found.port.empty() ? "all" : fmt::format("'{}'", found.port)));
    types.push_back(std::move(found));
  }
  return types;
}

std::vector<PortType> set_byte_inputs(const std::vector<PortType>& types, Preprocessing* how,
                                      LoweringOptions* lowering) {
  ByteInputs bytes;
  std::vector<PortType> others;
  bool any = false, all = false;
  for (const PortType& t : types) {
    if (t.type != DType::kUint8) {
      others.push_back(t);
      if (!t.port.empty()) bytes.others.push_back(t.port);
    } else {
      any = true, all |= t.port.empty();
      if (!t.port.empty()) bytes.inputs.push_back(t.port);
    }
  }
  if (all && !bytes.inputs.empty())
    throw UsageError(fmt::format(
        "--input-type uint8: it is given for all that take a picture and for '{}' by name; give one of both",
        bytes.inputs[0]));
  if (any) bytes.how = *how, lowering->bytes = std::move(bytes), how->built_in = true;
  return others;
}

}  // namespace sinter::convert

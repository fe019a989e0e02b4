#include "converter/cli/data_flags.h"

#include <fmt/format.h>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {

void DataFlags::add_to(CLI::App& command) {
  command.add_option(
      "--mean", text.mean,
      "M[,M...]: of pictures and sounds, the number is (pixel - mean) * scale, with pixels from 0 to "
      "255 and sounds from -1 to 1; one number, or one for each channel");
  command.add_option("--scale", text.scale, "S[,S...]: the same; fractions such as 1/255 may be given");
  command.add_option(
      "--resize", text.resize,
      "exact: stretch pictures to the input's size; crop, crop=SIDE: the shorter side to SIDE, then "
      "the middle; letterbox, letterbox=PIXEL: fit in and fill the rest. Bilinear, antialiased. Sounds: "
      "crop takes the middle, letterbox adds silence");
  command
      .add_option(
          "--layout", text.layout,
          "Where channels of a picture's input are, if its shape does not decide that: nhwc (last), nchw "
          "(first)")
      ->check(CLI::IsMember({"nhwc", "nchw"}));
  command
      .add_option("--channel-order", text.channel_order,
                  "The first channel of pictures: rgb (default: red) or bgr")
      ->check(CLI::IsMember({"rgb", "bgr"}));
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

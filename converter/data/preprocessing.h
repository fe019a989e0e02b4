// The steps from pictures and sounds to the numbers of a model's input.
//
//   number = (pixel - mean) * scale     pixels from 0 to 255, samples of sounds from -1 to 1
//
// computed in float32 in this order. Pictures fill inputs of [N,C,H,W], [N,H,W,C], the same without N, or
// [H,W], with N = 1 and C = 1 or 3; sounds fill inputs of one long axis, or of two, one of them channels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/data/picture.h"
#include "converter/data/sound.h"
#include "converter/ir/constant.h"

namespace sinter::convert {

struct Preprocessing {
  enum class Resize {
    kNone,       // another size is refused
    kExact,      // resize to the input's size; the ratio of the sides may change
    kCrop,       // resize the shorter side to `side`, then take the middle; sounds only give the middle
    kLetterbox,  // resize to fit into the input, and fill the rest with `fill`; sounds end with silence
  };
  enum class Layout { kByShape, kChannelsLast, kChannelsFirst };
  Resize resize = Resize::kNone;
  int64_t side = 0;  // 0: the smallest that covers the input
  int fill = 0;      // the value of a pixel
  Layout layout = Layout::kByShape;
  bool bgr = false;  // blue first
  // One number, or one for each channel in the input's order; empty: not given.
  std::vector<float> mean, scale;
  bool built_in = false;      // the model computes the numbers: uint8 inputs take pixels as they are
  bool skip_damaged = false;  // files that cannot be decoded are left out (samples/damaged_files.h)

  // Returns the steps for an input of this type, without those that are built into the model.
  Preprocessing for_type(DType dtype) const;
  // Whether pixels become other numbers before the model.
  bool changes_numbers() const;
  // Returns the flags that are given ("--mean, --scale"); empty: none.
  std::string given() const;
};

// The texts of a command's flags for it.
struct PreprocessingText {
  std::string resize, mean, scale, layout, channel_order;
};
// Numbers are decimals or fractions such as 1/255. Throws UsageError naming the flag.
Preprocessing parse_preprocessing(const PreprocessingText& text);

// An input of a model, which is filled.
struct DataInput {
  std::string name;
  DType dtype = DType::kNone;
  Dims dims;
};

// The places of the axes of an input's pixels.
struct PictureAxes {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
// Throws DataError where the input does not take one picture, or its shape does not decide the axes' order.
PictureAxes picture_axes(const DataInput& input, const Preprocessing& how);
// The axes of an input's sound. The channels are the first axis, the last, or a single one.
struct SoundAxes {
  int64_t frames = 1, channels = 1;
  bool channels_first = true;
};
// Returns nothing where the input has more than two axes of several entries.
std::optional<SoundAxes> sound_axes(const Dims& dims);
// Return the number of each channel: a default, the only one of `how`, or the channel's own. Throw UsageError
// where `how` has another number of them.
std::vector<float> mean_of_channels(const Preprocessing& how, int64_t channels);
std::vector<float> scale_of_channels(const Preprocessing& how, int64_t channels);

// Returns the picture resized, converted, and arranged. Integer inputs take rounded numbers (half to even)
// within their range. Float inputs need `mean` or `scale`, because no default is right for most models.
// `what` names the file. Throws DataError.
ConstantPtr picture_input(Picture picture, const std::string& what, const DataInput& input,
                          const Preprocessing& how);
// Returns the sound as the input takes it. A single channel is the mean of all of the file's channels;
// otherwise the file must have as many as the input. The rate is not changed.
ConstantPtr sound_input(const Sound& sound, const std::string& what, const DataInput& input,
                        const Preprocessing& how);

}  // namespace sinter::convert

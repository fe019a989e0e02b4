// Sounds: WAV files (RIFF) of PCM with 8, 16, 24 or 32 bits, or of floats with 32 or 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinter::convert {

struct Sound {
  int64_t rate = 0;  // frames a second
  int64_t channels = 0;
  int64_t frames = 0;
  std::vector<float> samples;  // -1 to 1 (floats may exceed that), the channels of a frame side by side
};

// Returns the sound; PCM of n bits is divided by 2^(n-1). `what` names the file in errors. Throws DataError.
Sound decode_wav(std::span<const std::byte> file, const std::string& what);

}  // namespace sinter::convert

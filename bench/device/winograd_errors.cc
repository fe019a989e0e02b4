// sinter_winograd_errors: the rounding errors of docs/numerics.md, as the converter measures them: by
// Winograd's algorithm over direct sums, against float64, with random weights and inputs.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "converter/plan/winograd_error.h"
#include "runtime/backend/winograd.h"

int main() {
  constexpr int64_t kOutputs = 64;
  std::printf("| channels | tile | root mean square | maximum |\n| --- | --- | --- | --- |\n");
  for (const int64_t channels : {1, 3, 16, 64, 256})
    for (const int64_t tile : sinter::kWinogradTiles) {
      std::vector<float> weights;
      uint32_t state = 1;
      for (int64_t i = 0; i < kOutputs * 9 * channels; ++i) {
        state = state * 1664525 + 1013904223;
        weights.push_back(static_cast<float>(state >> 8) * 0x1p-23f - 1);
      }
      const auto [rms, maximum] = sinter::convert::winograd_error(weights, kOutputs, channels, tile);
      std::printf("| %d | %d | %.2f | %.2f |\n", static_cast<int>(channels), static_cast<int>(tile), rms,
                  maximum);
    }
}

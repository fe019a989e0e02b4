// Runs a decoder that keeps its context, as an application does:
//
//   run_decoder FILE LOGITS RUN...
//
// RUN is the tokens of a run ("3,5,7"), "reset", "at=N": the position becomes N, or "time=N": token 1 is
// computed N times at this position, and the shortest time is printed, in microseconds. Writes the logits of
// all runs of tokens, float32, one behind the other. A failure is printed, and the exit status is 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "sinter/runner.h"

namespace {

std::vector<int64_t> tokens_of(const char* text) {
  std::vector<int64_t> tokens;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end)
    tokens.push_back(std::strtoll(text, &end, 10));
  return tokens;
}

// Null: the model keeps no context.
int64_t* position_of(sinter::Runner& net) {
  const sinter::Model& model = net.model();
  for (uint32_t i = 0; i < model.state_count(); ++i)
    if (std::string_view(model.state(i).input) == "context_length")
      return net.session().state(i).as<int64_t>();
  return nullptr;
}

bool compute(sinter::Runner& net, const std::vector<int64_t>& tokens) {
  return net.set("input_ids", tokens, {1, static_cast<int64_t>(tokens.size())}) && net.run();
}

void print_time(sinter::Runner& net, int64_t* position, int repetitions) {
  using Clock = std::chrono::steady_clock;
  const int64_t at = *position;
  double best = 1e30;
  for (int i = 0; i < repetitions && net.ok(); ++i) {
    *position = at;
    const auto begin = Clock::now();
    compute(net, {1});
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::printf("%.1f\n", best);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  sinter::Runner net = sinter::Runner::open(argv[1]);
  std::FILE* out = std::fopen(argv[2], "wb");
  if (out == nullptr) return 2;
  for (int i = 3; i < argc && net.ok(); ++i) {
    const std::string_view run = argv[i];
    int64_t* position = position_of(net);
    if (position == nullptr && run.find('=') != std::string_view::npos) return 2;
    if (run == "reset") {
      net.reset();
    } else if (run.starts_with("at=")) {
      *position = std::atoll(argv[i] + 3);
    } else if (run.starts_with("time=")) {
      print_time(net, position, std::atoi(argv[i] + 5));
    } else if (compute(net, tokens_of(argv[i]))) {
      const std::span<const float> logits = net.get<float>("logits");
      std::fwrite(logits.data(), sizeof(float), logits.size(), out);
    }
  }
  std::fclose(out);
  if (!net.ok()) std::fprintf(stderr, "%s\n", net.error());
  return net.ok() ? 0 : 1;
}

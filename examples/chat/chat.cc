// Continues what is typed with a language model, token by token.
//
//   chat MODEL.sinter TOKENS.txt [--prompt TEXT] [--tokens N] [--temperature T] [--top N] [--share P] [--seed
//   N]
//        [--threads N]
//
// The model has the input input_ids, int64 [1, N], in two shape sets or more, one of them with N = 1, and the
// output logits, float32 [1, N, tokens]; its context is state (`sinter convert --max-context`). Without
// --prompt, every line of the standard input is one. Exit code 0; 1: the model or the tokens cannot be used,
// or a run failed; 2: wrong use.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "sampler.h"
#include "sinter/runner.h"
#include "tokenizer.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  const char *model = nullptr, *tokens = nullptr, *prompt = nullptr;
  long count = 120;
  int threads = 1;
  Sampler sampler;
};

constexpr char kUsage[] =
    "usage: chat MODEL.sinter TOKENS.txt [--prompt TEXT] [--tokens N] [--temperature T] [--top N]\n"
    "            [--share P] [--seed N] [--threads N]\n";

bool parse(int argc, char** argv, Options* o) {
  int at = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag.rfind("--", 0) != 0) {
      if (at == 2) return std::fprintf(stderr, "chat: '%s' is one file too many\n", argv[i]), false;
      (at++ == 0 ? o->model : o->tokens) = argv[i];
      continue;
    }
    if (i + 1 == argc) return std::fprintf(stderr, "chat: %s needs a value\n", argv[i]), false;
    const char* value = argv[++i];
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    if (flag == "--prompt") {
      o->prompt = value;
      continue;
    }
    if (end == value || *end != '\0' || !(number >= 0))
      return std::fprintf(stderr, "chat: %s takes a number from 0 on, not '%s'\n", flag.c_str(), value),
             false;
    if (flag == "--tokens")
      o->count = static_cast<long>(number);
    else if (flag == "--temperature")
      o->sampler.temperature = static_cast<float>(number);
    else if (flag == "--top")
      o->sampler.top = static_cast<size_t>(number);
    else if (flag == "--share")
      o->sampler.share = static_cast<float>(number);
    else if (flag == "--seed")
      o->sampler.random.seed(static_cast<uint64_t>(number));
    else if (flag == "--threads")
      o->threads = static_cast<int>(number);
    else
      return std::fprintf(stderr, "chat: %s is not an option\n", flag.c_str()), false;
  }
  return at == 2;
}

// The model with its context, and what running it took.
class Decoder {
 public:
  explicit Decoder(sinter::Runner net) : net_(std::move(net)) {
    // The longest piece of a prompt that a shape set takes.
    for (uint32_t entry = 0; entry < net_.model().entry_count() && net_.use_entry(entry); ++entry) {
      const auto dims = net_.shape("input_ids");
      if (dims.size() == 2) longest_ = std::max(longest_, dims[1]);
    }
  }
  sinter::Runner& net() { return net_; }

  // Reads tokens; the logits after the last one, empty on failure.
  std::span<const float> read(std::span<const int64_t> tokens) {
    std::span<const float> last;
    while (!tokens.empty()) {
      const auto piece = static_cast<int64_t>(tokens.size()) >= longest_ ? longest_ : 1;
      const auto began = Clock::now();
      net_.set("input_ids", tokens.first(static_cast<size_t>(piece)), {1, piece});
      net_.run();
      (piece > 1 ? prompt_ : token_).add(piece, began);
      const auto logits = net_.get<float>("logits");
      if (logits.empty()) return {};
      last = logits.last(logits.size() / static_cast<size_t>(piece));
      tokens = tokens.subspan(static_cast<size_t>(piece));
    }
    return last;
  }

  void report(const Options& o) const {
    const auto line = [&](const char* what, const Times& t) {
      if (t.count > 0)
        std::fprintf(stderr, "%s: %ld tokens, %.0f tokens per second\n", what, t.count,
                     static_cast<double>(t.count) / t.seconds);
    };
    std::fprintf(stderr, "\n");
    line("pieces of prompts", prompt_);
    line("one by one", token_);
    std::fprintf(stderr, "memory: %.2f MB beside the mapped file, %d thread%s\n",
                 static_cast<double>(net_.bytes()) / 1e6, o.threads, o.threads == 1 ? "" : "s");
  }

 private:
  struct Times {
    long count = 0;
    double seconds = 0;
    void add(int64_t tokens, Clock::time_point began) {
      count += static_cast<long>(tokens);
      seconds += std::chrono::duration<double>(Clock::now() - began).count();
    }
  };
  sinter::Runner net_;
  int64_t longest_ = 1;
  Times prompt_, token_;
};

bool answer(const Tokenizer& tokenizer, const std::string& prompt, Options* o, Decoder* decoder) {
  std::vector<int64_t> next = tokenizer.encode(prompt);
  next.insert(next.begin(), Tokenizer::kEnd);
  std::fputs(prompt.c_str(), stdout);
  for (long i = 0; i < o->count; ++i) {
    const auto logits = decoder->read(next);
    if (logits.empty()) return false;
    next = {o->sampler(logits)};
    if (next[0] == Tokenizer::kEnd) break;
    std::fputs(tokenizer.text(next[0]).c_str(), stdout);
    std::fflush(stdout);
  }
  std::fputs("\n", stdout);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, &o)) return std::fputs(kUsage, stderr), 2;
  const Tokenizer tokenizer = Tokenizer::open(o.tokens);
  if (tokenizer.size() == 0)
    return std::fprintf(stderr, "chat: %s is not a file of tokens; give the tokens.txt of the model\n",
                        o.tokens),
           1;
  sinter::RunnerOptions options;
  options.threads = o.threads;
  Decoder decoder(sinter::Runner::open(o.model, options));
  sinter::Runner& net = decoder.net();
  const auto logits = net.shape("logits");
  if (net && (logits.empty() || static_cast<size_t>(logits.back()) != tokenizer.size()))
    return std::fprintf(stderr,
                        "chat: %s does not have the %zu tokens of %s; give the tokens.txt of the model\n",
                        o.model, tokenizer.size(), o.tokens),
           1;
  bool good = static_cast<bool>(net);
  if (good && o.prompt != nullptr) {
    good = answer(tokenizer, o.prompt, &o, &decoder);
  } else {
    for (std::string line; good && std::getline(std::cin, line); net.reset())
      good = answer(tokenizer, line, &o, &decoder);
  }
  if (!good) return std::fprintf(stderr, "chat: %s\n", net.error()), 1;
  decoder.report(o);
  return 0;
}

#include "converter/cli/session_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "converter/diagnostics/errors.h"
#include "sinter/thread_pool.h"

namespace sinter::convert {
namespace {

constexpr int kMaxProcessors = 4096;

// Returns the number that `text` consists of, from 0 to kMaxProcessors - 1; otherwise -1.
int number_of(std::string_view text) {
  int n = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() && n >= 0 && n < kMaxProcessors ? n : -1;
}

// Returns the processors that "0,2-3" lists, the fastest for "fast", none for "". Throws UsageError.
std::vector<int> parse_processors(const std::string& text) {
  std::vector<int> processors;
  if (text.empty()) return processors;
  if (text == "fast") {
    processors.resize(kMaxProcessors);
    processors.resize(static_cast<size_t>(fastest_processors(processors)));
    return processors;
  }
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view item = std::string_view(text).substr(at, end - at);
    const size_t dash = item.find('-');
    const int first = number_of(item.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : number_of(item.substr(dash + 1));
    if (first < 0 || last < first)
      throw UsageError(fmt::format(
          "--processors: '{}' is not a processor or a range of them; give a list such as 0,2-3, or fast",
          item));
    for (int p = first; p <= last; ++p) processors.push_back(p);
    at = end + 1;
  }
  return processors;
}

}  // namespace

void SessionFlags::add_to(CLI::App& command) {
  begin_group(command, flag_group::kTarget);
  add_threads(command, threads);
  add_value(command, "--processors", processors, "LIST",
            "Run the threads beside the first on these processors: 0,2-3, or fast for the fastest ones");
  add_value(command, "--backend", backend, "NAME", backend_help());
}

HostSession::Options SessionFlags::options(uint32_t entry) const {
  return {.threads = threads, .backend = backend, .processors = parse_processors(processors), .entry = entry};
}

}  // namespace sinter::convert

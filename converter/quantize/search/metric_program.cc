#include "converter/quantize/search/metric_program.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/pending_file.h"
#include "converter/files/shell_command.h"
#include "converter/files/temporary_folder.h"
#include "converter/quantize/samples/carried_states.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostOutput = size_t{64} << 20;  // bytes that a program may print

// Returns the text that the command prints until its end.
std::string output_of(ShellCommand& running, const std::string& command, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  const int output = ::fileno(running.output());
  std::string text;
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{output, POLLIN, 0};
    const int found = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (found < 0 && errno == EINTR) continue;
    if (found == 0)
      throw DataError(
          fmt::format("'{}' took longer than {:g} s and was ended; give more time with --metric-seconds",
                      command, seconds));
    const ssize_t got = found < 0 ? -1 : ::read(output, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) running.fail("read from");
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMostOutput)
      throw DataError(fmt::format("'{}' printed more than {} bytes; print one number", command, kMostOutput));
  }
  running.finish();
  return text;
}

std::optional<double> number_of(std::string_view text) {
  double x = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), x);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(x) : std::nullopt;
}

}  // namespace

double parse_metric_lines(const std::string& text, const std::string& what, std::string* name) {
  double sum = 0;
  int64_t count = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (line.empty()) continue;
    std::optional<double> number = number_of(line);
    if (!number && line.front() == '{') {
      const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.size() == 1 && json.begin().value().is_number())
        number = json.begin().value().get<double>(), *name = json.begin().key();
    }
    if (!number || !std::isfinite(*number))
      throw DataError(
          fmt::format("'{}' printed '{}', which is neither a number nor a JSON object with one number; "
                      "write messages to standard error",
                      what, line.substr(0, 100)));
    sum += *number, ++count;
  }
  if (count == 0) throw DataError(fmt::format("'{}' printed nothing; print one number", what));
  return sum / static_cast<double>(count);
}

ProgramMetric::ProgramMetric(std::string command, std::string data, double seconds)
    : command_(std::move(command)), data_(std::move(data)), seconds_(seconds) {}

double ProgramMetric::measure(SampleSource& samples, const RunSample& run) {
  const TemporaryFolder folder;
  nlohmann::json manifest{{"data", data_}, {"samples", nlohmann::json::array()}};
  samples.rewind();
  Sample sample;
  for (size_t index = 0; samples.next(&sample); ++index) {
    nlohmann::json outputs = nlohmann::json::object();
    const Arrays arrays = run(sample);
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::filesystem::path file = folder / fmt::format("{}-{}.npy", index, i);
      write_arrays(file, {arrays[i]});
      outputs[arrays[i].first] = file.string();
    }
    nlohmann::json entry{{"index", index}, {"outputs", outputs}};
    for (const auto& file : samples.files_of(static_cast<int64_t>(index)))
      entry["files"].push_back(file.string());
    manifest["samples"].push_back(std::move(entry));
  }
  const std::filesystem::path path = folder / "manifest.json";
  write_whole(path, json_text(manifest, 1) + '\n');
  const std::string manifest_path = path.string();
  ShellCommand program(command_, &manifest_path);
  return parse_metric_lines(output_of(program, command_, seconds_), command_, &name_);
}

double ProgramMetric::measure(SampleSource& samples, const Graph& graph, const RunnerOptions& options,
                              int64_t sequence) {
  for (const ValueId id : graph.outputs)
    if (!graph.value(id).bounded_dims.empty())
      throw DataError(
          fmt::format("output '{}' has a length that depends on the data, which --max-drop cannot measure by "
                      "'{}'; leave it out",
                      graph.value(id).name, command_));
  StatefulRunner runner(graph, options);
  int64_t index = 0;
  return measure(samples, [&](const Sample& sample) {
    if (sequence > 0 && index++ % sequence == 0) runner.reset();
    runner.run(sample);
    Arrays arrays;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (graph.state_written(graph.outputs[i]) != nullptr) continue;
      arrays.emplace_back(graph.value(graph.outputs[i]).name, copy_of(runner.output(i)));
    }
    return arrays;
  });
}

}  // namespace sinter::convert

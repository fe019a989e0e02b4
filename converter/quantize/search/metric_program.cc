#include "converter/quantize/search/metric_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "converter/data/file_list.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/pending_file.h"
#include "converter/files/temporary_folder.h"
#include "converter/quantize/samples/carried_states.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostOutput = size_t{64} << 20;  // bytes that a program may print

// `command ARGUMENT` in a group of processes of its own, which ends with this object.
class Program {
 public:
  Program(const std::string& command, const std::string& argument) : command_(command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("started");
    const std::string line = command + " \"$1\"";
    pid_ = ::fork();
    if (pid_ < 0) {
      ::close(ends[0]), ::close(ends[1]);
      fail("started");
    }
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), "sh", argument.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::setpgid(pid_, pid_);
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Program() {
    if (output_ >= 0) ::close(output_);
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // What it prints until its end.
  std::string output(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
    std::string text;
    char buffer[4096];
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd ready{output_, POLLIN, 0};
      const int found = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
      if (found < 0 && errno == EINTR) continue;
      if (found == 0)
        throw DataError(
            fmt::format("'{}' took longer than {:g} s and was ended; give more time with --metric-seconds",
                        command_, seconds));
      const ssize_t got = found < 0 ? -1 : ::read(output_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read from");
      if (got == 0) break;
      text.append(buffer, static_cast<size_t>(got));
      if (text.size() > kMostOutput)
        throw DataError(
            fmt::format("'{}' printed more than {} bytes; print one number", command_, kMostOutput));
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    throw DataError(WIFEXITED(status)
                        ? fmt::format("'{}' ended with exit code {}", command_, WEXITSTATUS(status))
                        : fmt::format("'{}' was terminated by signal {}", command_, WTERMSIG(status)));
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw FileError(fmt::format("'{}' cannot be {}: {}", command_, what, std::strerror(errno)));
  }
  std::string command_;
  pid_t pid_ = -1;
  int output_ = -1;
};

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

ProgramMetric::ProgramMetric(std::string command, std::string data, const std::vector<SampleInput>& inputs,
                             double seconds)
    : command_(std::move(command)), data_(std::move(data)), inputs_(names_of(inputs)), seconds_(seconds) {}

double ProgramMetric::measure(SampleSource& samples, const RunSample& run) {
  const TemporaryFolder folder;
  const std::optional<FileList> list = list_files(data_, inputs_);
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
    if (list && index < list->samples.size()) {
      entry["files"] = nlohmann::json::array();
      for (const auto& file : list->samples[index].files) entry["files"].push_back(file.string());
    }
    manifest["samples"].push_back(std::move(entry));
  }
  const std::filesystem::path path = folder / "manifest.json";
  write_whole(path, json_text(manifest, 1) + '\n');
  Program program(command_, path.string());
  return parse_metric_lines(program.output(seconds_), command_, &name_);
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
      const TensorView view = runner.output(i);
      const auto shape = view.shape();
      arrays.emplace_back(graph.value(graph.outputs[i]).name,
                          Constant::owned(view.dtype, Dims(shape.begin(), shape.end()),
                                          Bytes(view.data, view.data + view.dense_bytes())));
    }
    return arrays;
  });
}

}  // namespace sinter::convert

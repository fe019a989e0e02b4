// What a program that calls a command is told.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sinter::convert {

// A program that calls a command takes what comes of it, in place of the standard streams.
class CommandListener {
 public:
  virtual ~CommandListener() = default;
  // What --json prints; `text`: what convert prints without it.
  virtual void result(const nlohmann::json& json, const std::string& text) = 0;
  // Called by the thread that runs the command. `fraction`: of all of it, 0 to 1; `stage`: in words. What it
  // throws ends the command, which leaves no file.
  virtual void progress(double fraction, const std::string& stage) = 0;
};

}  // namespace sinter::convert

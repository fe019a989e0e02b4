// The interface through which a command reports to a program that calls it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sinter::convert {

// Takes the result and the progress of a command, in place of the standard streams.
class CommandListener {
 public:
  virtual ~CommandListener() = default;
  // Takes the object that --json prints, and the text that convert prints without it.
  virtual void result(const nlohmann::json& json, const std::string& text) = 0;
  // Takes the finished part of the command, 0 to 1, and its stage in words. The thread that runs the command
  // calls it. An exception from it ends the command, which leaves no file.
  virtual void progress(double fraction, const std::string& stage) = 0;
};

}  // namespace sinter::convert

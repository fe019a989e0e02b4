// Files that exist under their name only once they are whole. Until then they have another beside it, and go
// if their writer gives up or, after remove_unfinished_on_signals(), if a signal ends the program. (Nothing
// helps against SIGKILL: then "NAME.partial-PID" stays, never NAME.)
#pragma once

#include <filesystem>

namespace sinter::convert {

class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path final_path);
  ~Unfinished();  // removes the file unless it is finished
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  // Where to write.
  const std::filesystem::path& path() const { return path_; }
  // Renames it into place; throws FileError.
  void finish();

 private:
  std::filesystem::path final_path_, path_;
  int slot_ = -1;
};

// SIGINT, SIGTERM and SIGHUP remove what is unfinished and end the program as they would have. So does
// SIGBUS, which is raised when a mapped file becomes shorter; a message follows, and exit code 6.
void remove_unfinished_on_signals();

}  // namespace sinter::convert

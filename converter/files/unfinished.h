// What goes when a signal ends the program: files that are not whole yet, and temporary ones. (Nothing helps
// against SIGKILL: then "NAME.partial-RANDOM" stays, never NAME.)
#pragma once

namespace sinter::convert {

// The file or folder at a path, while the object exists. It is removed by a signal alone, a folder with the
// files in it. The text has to stay where it is, and to be a whole path, or empty, at any time.
class Unfinished {
 public:
  explicit Unfinished(const char* path);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  int slot_ = -1;
};

// SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE remove what is unfinished and end the program as they would
// have. So does SIGBUS, raised when a mapped file becomes shorter; a message follows, and exit code 6.
void remove_unfinished_on_signals();

}  // namespace sinter::convert

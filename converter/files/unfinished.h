// Files that are removed when a signal ends the program: unfinished and temporary ones. (SIGKILL leaves
// "NAME.partial-RANDOM", but never NAME.)
#pragma once

namespace sinter::convert {

// The file or folder at a path, which a signal removes while the object exists, a folder with the files in
// it. The text has to keep its address, and to be a whole path, or empty, at any time.
class Unfinished {
 public:
  explicit Unfinished(const char* path);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  int slot_ = -1;
};

// Makes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE remove these files and then end the program as usual.
// SIGBUS, raised when a mapped file becomes shorter, does so with a message and exit code 6.
void remove_unfinished_on_signals();

}  // namespace sinter::convert

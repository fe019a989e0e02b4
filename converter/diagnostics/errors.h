// Exceptions of the converter. They are caught once, in cli/, and each has an exit code.
#pragma once

#include <stdexcept>

namespace sinter::convert {

// A file that cannot be opened, read or written (exit code 6); the text names it.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Input or calibration data that does not fit the model (exit code 5).
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A model file that is corrupt, foreign or too new (exit code 4).
class ModelFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Wrong usage that the argument parser cannot see (exit code 2).
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sinter::convert

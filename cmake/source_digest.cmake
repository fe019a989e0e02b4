# Writes OUT, a header with a number for the contents of the files that LIST names (sinter_source_digest()).
file(READ "${LIST}" files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 "${file}" one)
  string(APPEND all "${one}\n")
endforeach()
string(SHA256 all "${all}")
string(SUBSTRING "${all}" 0 16 number)
file(WRITE "${OUT}" "// Made by cmake/source_digest.cmake.\n#pragma once\n\n#include <cstdint>\n\n"
  "inline constexpr uint64_t kSourceDigest = 0x${number};\n")

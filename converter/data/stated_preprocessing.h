// The preprocessing as the metadata of a file states it (docs/data.md).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "converter/data/preprocessing.h"

namespace sinter::convert {

// How the keys begin that only a conversion's flags give, so that they state what was done.
inline constexpr std::string_view kOwnKeys = "preprocessing.";

// Returns the metadata by key, without mean, scale and order of channels if `numbers` is false.
std::map<std::string, std::string> stated_preprocessing(const Preprocessing& how, bool numbers);

// Returns the preprocessing that metadata states; `metadata` returns the value of a key, null where there is
// none. Throws DataError where the values are none of stated_preprocessing().
Preprocessing read_preprocessing(const std::function<const char*(const char* key)>& metadata);

}  // namespace sinter::convert

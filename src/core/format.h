// Text formatting under one name: std::format where the standard library has it, {fmt} elsewhere.
// Use only what both share: positional {} fields and the standard format specifications.
#pragma once

#ifdef MEGALITH_FORMAT_IS_FMT
#include <fmt/format.h>
namespace megalith {
using fmt::format;
template <typename... Args>
using FormatString = fmt::format_string<Args...>;
}  // namespace megalith
#else
#include <format>
namespace megalith {
using std::format;
template <typename... Args>
using FormatString = std::format_string<Args...>;
}  // namespace megalith
#endif

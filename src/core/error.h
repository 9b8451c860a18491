// The one exception type, and assertions for broken invariants of our own.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/format.h"

namespace megalith {

/// Exit status of the program for each kind of failure (docs/exit-codes.md).
enum class ErrorKind {
  usage = 2,        ///< bad command line or config
  input = 3,        ///< a file or value from outside is missing, damaged or does not fit
  environment = 4,  ///< disk full, no permission, out of memory, missing device or library
  training = 5,     ///< training stopped: loss not finite, and the like
  internal = 70,    ///< a bug in Megalith
};

/// What went wrong: `module: what was found; what was expected; what to do`.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string_view module, std::string_view message)
      : std::runtime_error(format("{}: {}", module, message)), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// Throws Error. `module` names the place a user knows: a file, a flag, a subcommand.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, std::string_view module, FormatString<Args...> text, Args&&... args) {
  throw Error(kind, module, format(text, std::forward<Args>(args)...));
}

/// Reports a broken invariant: throws Error of kind internal with the place in the source.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   std::string_view detail);

}  // namespace megalith

/// Stays on in release builds. `detail` is any std::string expression, evaluated only on failure.
#define MEGALITH_ASSERT(condition, detail)                                                    \
  do {                                                                                        \
    if (!(condition)) ::megalith::assertion_failed(#condition, __FILE__, __LINE__, (detail)); \
  } while (false)

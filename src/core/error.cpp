#include "core/error.h"

namespace megalith {

void assertion_failed(const char* condition, const char* file, int line, std::string_view detail) {
  fail(ErrorKind::internal, "internal error", "{} at {}:{} does not hold: {}. Please report this.", condition,
       file, line, detail);
}

}  // namespace megalith

#include <cstdio>

#include "core/format.h"
#include "core/version_data.h"

int main() {
  std::puts(megalith::format("megalith {}", megalith::version_number).c_str());
  return 0;
}

#include "core/error.h"
#include "train/png_compress.h"

namespace megalith {
namespace {

[[noreturn]] void missing() {
  fail(ErrorKind::environment, "plot",
       "this build has no zlib, so it writes no PNG; the SVG holds the same picture (Debian: apt-get install "
       "zlib1g-dev, "
       "then build again)");
}

}  // namespace

std::string png_compress(std::string_view) {
  missing();
}
std::uint32_t png_crc(std::string_view) {
  missing();
}

}  // namespace megalith

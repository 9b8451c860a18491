// Stands in for zstd_stream.cpp in a build without zstd.
#include "core/error.h"
#include "data/byte_stream.h"

namespace megalith {

std::unique_ptr<ByteStream> make_zstd_stream(std::unique_ptr<ByteStream> /*source*/,
                                             const std::string& path) {
  fail(ErrorKind::environment, path,
       "is compressed with zstd, but this megalith was built without it; install zstd's development package "
       "and build "
       "again, or run: zstd -dk {}",
       path);
}

}  // namespace megalith

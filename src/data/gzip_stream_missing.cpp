// Stands in for gzip_stream.cpp in a build without zlib.
#include "core/error.h"
#include "data/byte_stream.h"

namespace megalith {

std::unique_ptr<ByteStream> make_gzip_stream(std::unique_ptr<ByteStream> /*source*/,
                                             const std::string& path) {
  fail(ErrorKind::environment, path,
       "is compressed with gzip, but this megalith was built without zlib; install zlib's development "
       "package and build "
       "again, or run: gzip -dk {}",
       path);
}

}  // namespace megalith

#include <zlib.h>

#include "core/error.h"
#include "train/png_compress.h"

namespace megalith {

std::string png_compress(std::string_view bytes) {
  uLongf size = ::compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  const int status = ::compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                                 reinterpret_cast<const Bytef*>(bytes.data()),
                                 static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION);
  if (status != Z_OK)
    fail(ErrorKind::environment, "zlib", "cannot compress {} bytes (status {})", bytes.size(), status);
  packed.resize(size);
  return packed;
}

std::uint32_t png_crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

}  // namespace megalith

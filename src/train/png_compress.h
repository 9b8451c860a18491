// The two services of zlib that a PNG needs. A build without zlib links png_compress_missing.cpp instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// A zlib stream (RFC 1950). Raises Error (environment) in builds without zlib.
std::string png_compress(std::string_view bytes);

/// CRC-32 as PNG uses it.
std::uint32_t png_crc(std::string_view bytes);

}  // namespace megalith

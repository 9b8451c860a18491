// Bytes of a file, decompressed on the way where it is gzip or zstd, which its first bytes tell.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace megalith {

class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Fills the front of `buffer`; returns how many bytes, 0 at the end. Raises Error (input) with the file's
  /// name where reading fails or compressed data is damaged or ends too early.
  virtual std::size_t read(std::span<char> buffer) = 0;
  /// Bytes taken from the file so far, before decompression.
  virtual std::uint64_t consumed() const = 0;
};

/// Opens a file, or raises Error (input), (environment) where this build lacks the decompressor.
std::unique_ptr<ByteStream> open_byte_stream(const std::string& path);

/// Layers over another stream, one per format: gzip (several members in a row too) and zstd (several frames).
std::unique_ptr<ByteStream> make_gzip_stream(std::unique_ptr<ByteStream> source, const std::string& path);
std::unique_ptr<ByteStream> make_zstd_stream(std::unique_ptr<ByteStream> source, const std::string& path);

}  // namespace megalith
